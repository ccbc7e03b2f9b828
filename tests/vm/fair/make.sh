#!/bin/bash
# In the guest: makes zlib with its own makefile, over and over; ends only where that fails.
rm -rf /tmp/zlib
cp -r /fair/zlib /tmp/zlib
cd /tmp/zlib || exit 1
while make -j2 -f Makefile.in CC=gcc CFLAGS=-O2 libz.a >/tmp/make.log 2>&1; do
    echo made >>/tmp/makes
    rm -f ./*.o libz.a
done
tail -n 20 /tmp/make.log >&2
exit 1
