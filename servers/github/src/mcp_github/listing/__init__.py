"""How answers are cut to what a model needs: columns of objects, pages of lists, windows of lines."""
