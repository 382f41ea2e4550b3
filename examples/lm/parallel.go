package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// join connects to the other processes of the launch.
func (c *config) join() error {
	group, err := distributed.Init(distributed.Any, false)
	if err != nil {
		return err
	}
	if c.batch%group.Size() != 0 {
		return fmt.Errorf("-batch is %d; it must be a multiple of %d, the number of processes", c.batch, group.Size())
	}
	c.group = group
	return nil
}

// isFirst reports whether this process writes the output.
func (c config) isFirst() bool { return c.group == nil || c.group.Rank() == 0 }

// onFirst runs f in the first process. All processes return after it.
func (c config) onFirst(f func() error) error {
	if c.group == nil {
		return f()
	}
	return c.group.OnFirst(f)
}

// anyRank reports whether condition is true in a process. Processes that did not agree on the last step would wait for
// each other.
func (c config) anyRank(condition bool) (bool, error) {
	if c.group == nil {
		return condition, nil
	}
	return c.group.AnyRank(condition)
}

// ownBatch returns this process's share of a batch. All processes draw the same batch.
func (c config) ownBatch(r *rand.Rand, ids []int32, size int) passages {
	begin, end := 0, size
	if c.group != nil {
		begin, end = c.group.Share(size)
	}
	return batch(r, ids, size, c.length, begin, end)
}
