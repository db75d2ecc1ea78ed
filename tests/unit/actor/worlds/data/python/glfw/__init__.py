"""Stands for the package of that name: asks in a process of its own unless it knows its library."""
import os
import subprocess

if not os.environ.get("PYGLFW_LIBRARY", "").endswith("/glfw/x11/libglfw.so"):
    subprocess.run(["/bin/true"], check=True)
