package mlxc

// #include "load.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// shutdownMessage is the message of ErrShutdown; C returns the same message.
const shutdownMessage = C.MLXG_SHUT_DOWN

// shutdownLimit is how long Shutdown waits. Tests shorten it.
var shutdownLimit = 10 * time.Second

var shutdown struct {
	mu   sync.Mutex // held during a call
	done bool
}

// Shutdown ends the use of MLX. A program calls it once, as its last act before os.Exit or the return of main:
//
//	func main() {
//		status := run()
//		if err := mlxc.Shutdown(); err != nil {
//			fmt.Fprintln(os.Stderr, err)
//		}
//		os.Exit(status)
//	}
//
// On macOS, Go ends a process through the C library, which destroys the static objects of MLX. Goroutines,
// cleanups of unreachable arrays and MLX's own threads run on meanwhile, and may crash the process. On Linux,
// Go ends the process at once, and Shutdown is needed only if C code of the program calls exit.
//
// Shutdown lets no new evaluation begin, waits for the work on all streams and for the calls of other
// goroutines that wait for this work, and clears MLX's streams and cache. From then on arrays are not
// destroyed: their memory goes back to the system with the process. It returns the first error of AsyncEval
// that no other call has returned.
//
// Shutdown is final, because a goroutine that used MLX during the exit could crash the process. Every later
// operation returns ErrShutdown; an array keeps its shape and dtype, and cannot be read. If MLX was not loaded,
// Shutdown does not load it and returns nil. Later calls return nil.
//
// Shutdown waits for 10 seconds at most. If a function under a transform, a kernel or another process of a
// distributed group takes longer, it returns an error that names the unfinished work. The program can then exit
// with the risk above, or call Shutdown again, which waits again. A function that MLX calls must not call
// Shutdown: it receives an error.
func Shutdown() error {
	const op = "Shutdown"
	if life.Load() == lifeUsable && calledByMLX() {
		return opError(op, errors.New("it was called by a function under a transform: call it after the transform "+
			"has returned"))
	}
	shutdown.mu.Lock()
	defer shutdown.mu.Unlock()
	life.Store(lifeEnded)
	if shutdown.done || !bool(C.mlxg_library_end()) {
		return nil
	}
	freeQueue.flush(false)
	var e *C.char
	shutdown.done = bool(C.mlxg_shutdown(C.int(shutdownLimit.Milliseconds()), &e))
	switch {
	case !shutdown.done:
		return opError(op, fmt.Errorf("MLX is still at work after %v: it waits for %s", shutdownLimit, takeString(e)))
	case e != nil:
		return opError(op, takeError(e))
	}
	return nil
}

// calledByMLX is insideCallback for a goroutine that may not be locked to its thread. Inside a callback it always is.
func calledByMLX() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return insideCallback()
}
