"""Booting a kernel of a host once, over ssh: what that needs, ways to do it, the kernel's files, and the way back."""
