// Package distributed exchanges arrays between processes, through MLX's backends.
package distributed

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/hook"
)

// core holds functions of package mlxc that are not part of its API.
var core = hook.UseGroups[*mlxc.Array, mlxc.DType]()

// Backend names a transport between processes.
type Backend string

// The backends of MLX. A build of MLX may lack some of them.
const (
	Any   Backend = "any"   // the first backend for which the process was started
	Ring  Backend = "ring"  // a ring over TCP sockets
	MPI   Backend = "mpi"   // needs an MPI library on the machine
	NCCL  Backend = "nccl"  // for NVIDIA GPUs
	JACCL Backend = "jaccl" // for Macs connected by Thunderbolt
)

// Available reports whether the loaded MLX has the backend on this machine.
func (b Backend) Available() bool { return core.Available(string(b)) }

// Group is a group of processes, which includes the calling one. Any goroutine may use it.
//
// Operations on arrays are lazy: a message is sent when a result is evaluated. AnyRank, OnFirst, WeightedMean and
// Broadcast block until all processes call them. All processes of a group must evaluate the same operations in the same
// order; otherwise they block. If no other array depends on a result, call [mlxc.Eval] on it. Operations may be called
// under [mlxc.Compile].
//
// If a peer exits, the evaluation that needs it fails, and so does every later operation of the group. Discard the
// arrays of a failed evaluation. If the operand of a message fails in one process, only that process gets the error,
// and the others receive undefined elements; [Group.AnyRank] can tell them. MLX has no timeout for a peer that runs but
// does not respond.
//
// NCCL works on GPU streams, and the other backends on CPU streams. On a stream of the other device, operations use the
// default stream of their own.
type Group struct {
	handle     unsafe.Pointer // freed by a cleanup
	rank, size int
	backend    Backend
}

// Init connects to the other processes of the launch and returns the group of all. It blocks until all are connected.
// MLX reads the addresses from the environment, which the command mlxgrad launch sets. For a ring, MLX_RANK is the rank
// of this process and MLX_HOSTFILE names a file with the addresses of all, such as [["10.0.0.1:5000"],
// ["10.0.0.2:5000"]]. NCCL reads MLX_RANK, MLX_WORLD_SIZE, NCCL_HOST_IP and NCCL_PORT.
//
// If the process was not started for the backend, Init returns an error if strict is set. Otherwise it returns a group
// of one: sums, means and Broadcast return their argument, and Send and Recv are errors. Later calls for the same
// backend return another Group for the same processes.
func Init(backend Backend, strict bool) (*Group, error) {
	const op = "distributed.Init"
	handle, err := core.Init(string(backend), strict)
	if err != nil {
		return nil, mlxc.NewError(op, err)
	}
	g := newGroup(handle)
	if strict && g.backend == "" { // for some backends, MLX returns no error
		return nil, mlxc.NewError(op,
			fmt.Errorf("the backend %q is not available, or this process was not started for it", backend))
	}
	return g, nil
}

func newGroup(handle unsafe.Pointer) *Group {
	g := &Group{
		handle:  handle,
		rank:    core.Rank(handle),
		size:    core.Size(handle),
		backend: Backend(core.Backend(handle)),
	}
	runtime.AddCleanup(g, core.Free, handle)
	return g
}

// Rank returns the number of this process in the group, from 0.
func (g *Group) Rank() int { return g.rank }

// Size returns the number of processes in the group.
func (g *Group) Size() int { return g.size }

// Backend returns the group's backend, or "" for a group of one.
func (g *Group) Backend() Backend { return g.backend }

// Split returns the group of the processes that pass the same color, which must not be negative. Ranks in the new group
// ascend with key; processes that pass a negative key keep their relative order. Rings cannot be split.
func (g *Group) Split(color, key int) (*Group, error) {
	const op = "Split"
	if g == nil {
		return nil, mlxc.NewError(op, errNoGroup)
	}
	if color < 0 {
		return nil, mlxc.NewError(op, fmt.Errorf("the color is %d; it must not be negative", color))
	}
	defer runtime.KeepAlive(g)
	handle, err := core.Split(g.handle, color, key)
	if err != nil {
		return nil, mlxc.NewError(op, err)
	}
	return newGroup(handle), nil
}

var errNoGroup = errors.New("the group is nil")

// AllSum returns the sum of the arrays that the processes pass. They must have one shape and dtype. The gradient treats
// the arrays of the other processes as constants; use [Group.AverageGradients] for the gradient of a summed loss.
func (g *Group) AllSum(x *mlxc.Array) *mlxc.Array { return g.collect("all_sum", x) }

// AllMax returns the elementwise maximum of the arrays that the processes pass. They must have one shape and dtype. The
// operation has no gradient.
func (g *Group) AllMax(x *mlxc.Array) *mlxc.Array { return g.collectWithoutGradient("all_max", x) }

// AllMin returns the elementwise minimum of the arrays that the processes pass. They must have one shape and dtype. The
// operation has no gradient.
func (g *Group) AllMin(x *mlxc.Array) *mlxc.Array { return g.collectWithoutGradient("all_min", x) }

// AllGather returns the arrays that the processes pass, concatenated along the first axis in the order of ranks. They
// must have one shape and dtype; a scalar counts as an array of one element. The gradient flows to the process's own
// part only.
func (g *Group) AllGather(x *mlxc.Array) *mlxc.Array {
	const op = "all_gather"
	switch {
	case g == nil || x.Err() != nil:
	case x.NDim() == 0:
		x = x.Reshape(1)
		defer x.Free()
	case x.Dim(0) > math.MaxInt32/g.size:
		return invalid(op, errors.New("the result's first axis is longer than 2³¹−1"), x)
	}
	return g.collect(op, x)
}

// SumScatter returns this process's part of the sum of the arrays that the processes pass. The first axis is cut into
// as many equal parts as there are processes; if it cannot be, the result is an invalid array. MLX implements the
// operation for NCCL. With other backends, SumScatter computes an AllSum and returns one part.
func (g *Group) SumScatter(x *mlxc.Array) *mlxc.Array {
	const op = "sum_scatter"
	switch {
	case g == nil || x.Err() != nil:
	case x.NDim() == 0 || x.Dim(0)%g.size != 0:
		return invalid(op, fmt.Errorf("the first axis cannot be cut into %d equal parts", g.size), x)
	case g.size > 1 && g.backend != NCCL:
		sum := g.AllSum(x)
		defer sum.Free()
		parts := sum.Split(g.size, 0)
		for i, p := range parts {
			if i != g.rank {
				p.Free()
			}
		}
		return parts[min(g.rank, len(parts)-1)]
	}
	return g.collect(op, x)
}

// Send returns x. When the result is evaluated, x is sent to the process with rank dst. A ring connects neighbors only.
func (g *Group) Send(x *mlxc.Array, dst int) *mlxc.Array {
	if err := g.checkPeer("send", dst, x); err != nil {
		return mlxc.InvalidArray(err)
	}
	defer runtime.KeepAlive(g)
	return core.Send(g.handle, x, dst)
}

// Recv returns an array of this dtype and shape. When it is evaluated, it is received from the process with rank src. A
// ring connects neighbors only.
func (g *Group) Recv(src int, d mlxc.DType, shape ...int) *mlxc.Array {
	if err := g.checkPeer("recv", src); err != nil {
		return mlxc.InvalidArray(err)
	}
	defer runtime.KeepAlive(g)
	return core.Receive(g.handle, src, d, shape)
}

// RecvLike is Recv with the dtype and shape of x.
func (g *Group) RecvLike(x *mlxc.Array, src int) *mlxc.Array {
	if err := g.checkPeer("recv_like", src, x); err != nil {
		return mlxc.InvalidArray(err)
	}
	defer runtime.KeepAlive(g)
	return core.ReceiveLike(g.handle, x, src)
}

func (g *Group) collect(op string, x *mlxc.Array) *mlxc.Array {
	if g == nil {
		return invalid(op, errNoGroup, x)
	}
	defer runtime.KeepAlive(g)
	return core.Collect(g.handle, op, x)
}

// collectWithoutGradient is collect for operations whose gradients MLX 0.32.4 computes like those of a sum. Both kinds
// of gradients are errors.
func (g *Group) collectWithoutGradient(op string, x *mlxc.Array) *mlxc.Array {
	if g == nil || g.size == 1 || x.Err() != nil {
		return g.collect(op, x)
	}
	none := invalid(op, errors.New("the operation has no gradient"), x)
	return mlxc.CustomFunction(
		func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{g.collect(op, in[0])} },
		mlxc.CustomRules{
			VJP: func(_, _, _ []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{none} },
			JVP: func(_, _ []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{none} },
		})([]*mlxc.Array{x})[0]
}

func invalid(op string, err error, operands ...*mlxc.Array) *mlxc.Array {
	return mlxc.InvalidArray(mlxc.NewError(op, err, operands...))
}

// checkPeer returns an error if the process cannot exchange messages with peer. MLX would find this during evaluation,
// on another thread. checkPeer ignores invalid operands, whose error the call returns.
func (g *Group) checkPeer(op string, peer int, operands ...*mlxc.Array) error {
	var err error
	switch {
	case g == nil:
		err = errNoGroup
	case len(operands) > 0 && operands[0].Err() != nil:
		return nil // the call returns the operand's error
	case peer < 0 || peer >= g.size:
		err = fmt.Errorf("there is no process %d in a group of %d", peer, g.size)
	case peer == g.rank:
		err = fmt.Errorf("process %d is this one", peer)
	case g.backend == Ring && peer != (g.rank+1)%g.size && peer != (g.rank+g.size-1)%g.size:
		err = fmt.Errorf("process %d is not a neighbor of %d in a ring of %d", peer, g.rank, g.size)
	default:
		return nil
	}
	return mlxc.NewError(op, err, operands...)
}
