"""Answers from whole tables: which rows, which column, and what is computed of them.

question → matches of its words with cells → programs over the tables of the evidence → the likeliest one, executed
"""
