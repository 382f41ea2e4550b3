package mlxc

import "time"

// SetLockPatience sets lockPatience and returns the previous value.
func SetLockPatience(d time.Duration) time.Duration {
	before := time.Duration(lockPatience.Swap(int64(d)))
	return before
}

// SetShutdownLimit sets shutdownLimit.
func SetShutdownLimit(d time.Duration) { shutdownLimit = d }

// WaitingForLock returns the number of threads that wait for the graph lock.
func WaitingForLock() int { return waitingForLock() }
