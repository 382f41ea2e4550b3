package mlxc

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A scope does not end while Keep, on another goroutine, moves one of its arrays to the outer scope. If it did, the
// outer scope could end too, and then receive an array that nothing frees.
func TestScopeEndsAfterKeepMovedItsArray(t *testing.T) {
	var a *Array
	var moved atomic.Bool
	kept := make(chan struct{})
	WithScope(func() {
		WithScope(func() {
			a = FromSlice([]float32{1})
			inner, outer := a.scope, a.scope.parent
			outer.mu.Lock() // holds up the second half of Keep
			go func() {
				a.Keep()
				close(kept)
			}()
			for removing := false; !removing && inner.mu.TryLock(); runtime.Gosched() {
				removing = len(inner.arrays) == 0
				inner.mu.Unlock()
			}
			time.AfterFunc(20*time.Millisecond, func() {
				moved.Store(true)
				outer.mu.Unlock()
			})
		})
		require.True(t, moved.Load(), "the inner scope ended between the two halves of Keep")
	})
	<-kept
	require.ErrorIs(t, a.Err(), ErrFreed)
}
