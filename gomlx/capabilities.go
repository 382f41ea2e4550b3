package gomlx

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// missing lists the operations that the backend does not have.
var missing = []backends.OpType{
	backends.OpTypeInvalid,
	backends.OpTypeSelectAndScatterSum, // no method of backends.Function adds these
	backends.OpTypeBroadcast,
	backends.OpTypeDot,
	backends.OpTypeBlockForDotGeneral,
	backends.OpTypeAllReduce,
	backends.OpTypeCollectiveBroadcast,
	backends.OpTypeAllGather,
	backends.OpTypeFusedQuantizedDense,
	backends.OpTypeQuantizedEmbeddingLookup,
}

// Capabilities returns the operations and the dtypes of the backend.
func (b *backend) Capabilities() backends.Capabilities {
	c := backends.Capabilities{
		Operations: make(map[backends.OpType]bool),
		Functions:  true,
		DTypes:     make(map[dtypes.DType]bool),
	}
	for op := range backends.OpTypeLast {
		c.Operations[op] = true
	}
	for _, op := range missing {
		delete(c.Operations, op)
	}
	for d := range codecs {
		if b.supports(d) {
			c.DTypes[d] = true
		}
	}
	return c
}
