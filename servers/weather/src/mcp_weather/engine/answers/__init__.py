"""What tools answer, one module for each subject."""
