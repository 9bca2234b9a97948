"""Stands for the program that a container runs."""
