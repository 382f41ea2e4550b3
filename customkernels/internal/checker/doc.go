// Package checker runs a Metal shader on the CPU under a checker.
//
// The shader, rewritten to C++ as for the host executor, is compiled with the
// instrumentation of -fsanitize=thread, bounds, alignment and shift-exponent, and linked with
// a runtime of this package (folder worker) in the place of the sanitizers': a small program
// that runs one launch and writes down what it found. It runs in a process of its own, so that a shader that
// divides by zero or never ends takes nobody with it. Program counters come back
// and are translated to lines by the program's debug information.
package checker
