"""Says which Python this is, where its packages are, and which glibc and libstdc++ the machine has."""

import ctypes
import os
import platform
import sysconfig

print(
    platform.python_implementation().replace("CPython", "Python"),
    platform.python_version(),
    "on",
    sysconfig.get_platform(),
)
print(sysconfig.get_path("purelib"))
print(os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else "")
mapped = []
try:
    ctypes.CDLL("libstdc++.so.6")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        mapped = [line.split()[-1] for line in maps if "libstdc++.so.6" in line]
except OSError:
    pass
# The file that the name is a link to: libstdc++.so.6.0.30.
print(os.path.basename(os.path.realpath(mapped[0])) if mapped else "")
