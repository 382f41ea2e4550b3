// Package cexit ends the process as Go does on macOS, for the tests of package mlxc's Shutdown.
package cexit

/*
#include <stdlib.h>
#include <unistd.h>

static void linger(void) { usleep(200 * 1000); }

// Registered before MLX is loaded, linger runs after the destructors of MLX's static objects.
__attribute__((constructor)) static void begin(void) { atexit(linger); }
*/
import "C"

// Exit ends the process through the C library, which runs the destructors of all static C++ objects. The process then
// lives for another 200 ms, as with libraries whose destructors are slow, while goroutines and threads continue. On
// Linux, os.Exit and the return of main end the process without destructors.
func Exit(status int) { C.exit(C.int(status)) }
