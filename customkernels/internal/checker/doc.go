// Package checker runs a Metal shader on the CPU and finds races, synchronization errors, out-of-bounds accesses and
// other undefined behavior.
//
// The input is the shader as C++, from translate.Host. It is compiled with the instrumentation of -fsanitize=thread,
// bounds, alignment and shift-exponent, and linked with the runtime in folder worker in place of the sanitizers'
// runtimes. The result is a program that runs one launch under several schedules of its threads. It runs in a
// separate process, so that a crash or an endless loop in a shader does not affect the caller. The program writes
// its findings, the outputs and the memory traffic to a file. Package checker maps program counters to lines of the
// text by the program's debug information.
//
// Two accesses to one element by different threads race if at least one is a write, not both are atomic, and nothing
// orders them. Within a threadgroup, a threadgroup barrier orders them if its flags cover the address space; within a
// simdgroup a simdgroup barrier does too. Fences around atomic operations order accesses of any threads. Nothing else
// orders accesses (see worker/rule.h).
package checker
