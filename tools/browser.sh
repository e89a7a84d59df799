#!/usr/bin/env bash
# The tests of the report's page need a Chromium: finds one, or installs Debian's where that is allowed.
# Without one the tests say that they are skipped; nothing else depends on it.
set -uo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
    echo "No Chromium, and no apt-get to install one: tests in a browser are skipped."
    exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    echo "No Chromium, and installing one needs root: tests in a browser are skipped. Try: apt-get install chromium"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
install || { "${as_root[@]}" apt-get update -qq && install; } || echo "Chromium could not be installed: tests in a browser are skipped."
exit 0
