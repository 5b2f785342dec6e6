"""Checks of the words of a baton. They ask and never block, are made for English, and read a text in linear time."""
