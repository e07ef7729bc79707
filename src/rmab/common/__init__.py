"""What every room uses: array types, checks of arguments, files, cores, and how compiled code is compiled."""
