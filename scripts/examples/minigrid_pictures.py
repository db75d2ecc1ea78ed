"""MiniGrid without its missions, which are texts: the agent sees the 7 by 7 cells before it."""
import gymnasium
from minigrid.wrappers import ImgObsWrapper


def make(name):
    return ImgObsWrapper(gymnasium.make(name))
