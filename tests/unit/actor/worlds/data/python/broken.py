def make(:
