"""Tables: workbooks by calamine, with what it leaves out, and databases."""
