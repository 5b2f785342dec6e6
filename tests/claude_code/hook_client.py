"""A hook command for tests: sends what Claude Code tells it to whoever records in the test, and prints the answer."""

import socket
import sys


def main() -> None:
    """Pass one event on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(sys.argv[1])
        line.sendall(sys.stdin.buffer.read())
        line.shutdown(socket.SHUT_WR)
        while answer := line.recv(1 << 16):
            sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    main()
