"""Reads the values of the oven every ten seconds and writes one CSV file a day.

Usage: python read_oven.py --out /srv/oven

Columns: time (UTC, ISO 8601), deck, temperature in degrees Celsius, steam in millilitres since the last row,
door (1 = open), energy in watt hours since midnight. Rows of a deck that does not answer are left out.
"""

import argparse
import csv
import datetime as dt
import struct
import socket
import time
from pathlib import Path

HOST = "192.168.20.44"
PORT = 5020
UNIT = 1
DECKS = 4
PAUSE_S = 10
TIMEOUT_S = 3
# After this many failures in a row the script sends one mail and goes on trying.
FAILURES_BEFORE_MAIL = 6
MAIL_TO = "hallenmeister@theis-brot.example"
# Files older than this are compressed by the nightly job, not by this script.
KEEP_PLAIN_DAYS = 14

REGISTERS = {"temperature": 40010, "steam": 40050, "door": 40115, "energy": 40200}


def request(sock, start, count):
    """One Modbus request, function 3; raises ConnectionError when the oven closes the connection."""
    frame = struct.pack(">HHHBBHH", 1, 0, 6, UNIT, 3, start - 40001, count)
    sock.sendall(frame)
    head = sock.recv(9)
    if len(head) < 9:
        raise ConnectionError("the oven closed the connection")
    body = sock.recv(2 * count)
    return struct.unpack(f">{count}H", body)


def read_all(sock):
    temperature = request(sock, REGISTERS["temperature"], DECKS)
    steam = request(sock, REGISTERS["steam"], DECKS)
    door = request(sock, REGISTERS["door"], DECKS)
    energy = request(sock, REGISTERS["energy"], 2 * DECKS)
    for deck in range(DECKS):
        yield (
            deck + 1,
            temperature[deck] / 10,  # the register holds tenths of a degree
            steam[deck],
            door[deck],
            (energy[2 * deck] << 16) + energy[2 * deck + 1],
        )


def file_of(folder, now):
    return folder / f"oven-{now:%Y-%m-%d}.csv"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    failures = 0
    while True:
        now = dt.datetime.now(dt.timezone.utc)
        try:
            with socket.create_connection((HOST, PORT), TIMEOUT_S) as sock:
                rows = list(read_all(sock))
            failures = 0
        except OSError as error:
            failures += 1
            print(f"{now:%H:%M:%S} no answer ({failures}): {error}")
            rows = []
        with file_of(out, now).open("a", newline="") as file:
            writer = csv.writer(file)
            for row in rows:
                writer.writerow([now.isoformat(timespec="seconds"), *row])
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
