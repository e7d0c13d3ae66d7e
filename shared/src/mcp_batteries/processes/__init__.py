"""How other programs are started so that the kernel confines them."""
