#!/bin/sh
# The main job on the sample kernel of each machine: put probes in, run it, explain every changed byte.
# Usage: samples/tour.sh [DIRECTORY FOR THE PATCHED KERNELS]
set -eu
samples=$(dirname "$0")
out=${1:-$(mktemp -d)}

for machine in amd64 arm64 riscv64; do
    kernel=$samples/kernel-$machine.elf
    echo
    echo "== $machine"
    set -x
    kinst-rewrite "$kernel" --probe 'fbt::rpc_dispatch:entry' --probe 'fbt::callout_execute:' \
        --probe 'kinst::trap_selftest:' -o "$out/kernel-$machine.elf"
    kinst-run "$out/kernel-$machine.elf" --console "$out/console-$machine.txt" -o "$out/hits-$machine.txt"
    { set +x; } 2>/dev/null
    head -n 12 "$out/hits-$machine.txt"
    echo "       ... $(($(grep -c : "$out/hits-$machine.txt") - 1)) hits in all"
    tail -n 3 "$out/console-$machine.txt"
    set -x
    kinst-diff "$kernel" "$out/kernel-$machine.elf"
    { set +x; } 2>/dev/null
done
echo
echo "The patched kernels, their consoles and all hits are in $out"
