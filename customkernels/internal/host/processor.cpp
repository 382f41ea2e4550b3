// Which processor this is, as far as generated code depends on it.
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

void mlxg_host_processor(char* out, size_t len) {
  size_t at = 0;
  const auto add = [&](const char* name, unsigned long value) {
    const int n = snprintf(out + at, len - at, "%s=%lx ", name, value);
    if (n > 0 && at + size_t(n) < len) at += size_t(n);
  };
  if (len == 0) return;
  out[0] = 0;
#if defined(__x86_64__)
  // Family and model choose the tuning, the feature leaves the instructions.
  // Leaf 1's ebx names the core that asks, and so do some bits of leaf 13.
  unsigned a, b, c, d;
  if (__get_cpuid(0, &a, &b, &c, &d)) add("v", b), add("v", c), add("v", d);
  if (__get_cpuid(1, &a, &b, &c, &d)) add("1a", a), add("1c", c & ~(1u << 27)), add("1d", d);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    add("7b", b), add("7c", c & ~(1u << 4)), add("7d", d);
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) add("71a", a);
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) add("8c", c), add("8d", d);
#elif defined(__APPLE__)
  size_t n = len - 1;
  if (sysctlbyname("machdep.cpu.brand_string", out, &n, nullptr, 0) == 0) out[n] = 0;
  (void)add, (void)at;
#elif defined(__linux__)
  add("hwcap", getauxval(AT_HWCAP));
  add("hwcap2", getauxval(AT_HWCAP2));
  if (FILE* f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "r")) {
    unsigned long midr = 0;
    if (fscanf(f, "%lx", &midr) == 1) add("midr", midr);
    fclose(f);
  }
#endif
}
