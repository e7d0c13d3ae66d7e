"""Pictures that the models of all hosts take, checked and written anew in a process apart."""
