"""What the command ``octants`` does, a module for each of its words."""
