"""Loads a shared library that has Troupe in it, and trains with it: module_test.py LIBRARY."""
import ctypes
import sys

words = [b"line_module", b"--threads", b"--epochs", b"2"]
arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(words), arguments))
