"""How workers on several hosts find each other and talk. The parent process uses it too."""
