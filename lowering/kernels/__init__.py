"""Kernels and the steps that run them: the data between fusion, loops and memory, its text and its reader. May import
elements and graph."""
