"""Used by all folders: array types, checks of arguments, files, the number of cores, and the compiler's options."""
