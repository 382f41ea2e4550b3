package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// DistributedBackend is what carries messages between processes.
type DistributedBackend string

// The backends of MLX, where they are built: rings over TCP sockets on any machine, MPI
// where its library is installed, NCCL for NVIDIA's GPUs, JACCL for Macs that are
// connected by Thunderbolt. AnyBackend takes the first that the process was started for.
const (
	AnyBackend   DistributedBackend = "any"
	RingBackend  DistributedBackend = "ring"
	MPIBackend   DistributedBackend = "mpi"
	NCCLBackend  DistributedBackend = "nccl"
	JACCLBackend DistributedBackend = "jaccl"
)

// Available reports whether this build of MLX, on this machine, has the backend.
func (b DistributedBackend) Available() bool {
	if Check() != nil {
		return false
	}
	name := C.CString(string(b))
	defer C.free(unsafe.Pointer(name))
	return bool(C.mlxg_group_available(name))
}

// Group is a number of processes that exchange arrays, the calling one among them.
//
// Its operations are lazy, like all others: messages are sent when a result is
// evaluated. All processes of the group must evaluate the same operations of it in the
// same order, or they wait for each other; after an operation that nothing else of the
// graph asks for, Eval its result. They may be called under Compile.
//
// An operation whose peer is gone fails when it is evaluated, and so does every later one:
// the group is lost. An array whose evaluation failed is of no more use either; go on from
// those before it. Of a peer that is there but does not answer, MLX waits without a limit.
//
// Except with NCCL, messages are sent from CPU streams: on a GPU stream, an operation
// goes to the default CPU stream.
type Group struct {
	ctx        unsafe.Pointer
	rank, size int
	backend    DistributedBackend
}

// InitDistributed connects to the other processes that run this program and returns the
// group of all. It waits until they are there. Who they are, MLX takes from the
// environment: for a ring, MLX_RANK is the number of this process and MLX_HOSTFILE a file
// that lists the addresses of all, [["10.0.0.1:5000"], ["10.0.0.2:5000"]].
//
// In a process that was not started for the backend, it gives a group of one, whose
// operations give their argument; with strict set, it gives an error. Later calls for the
// same backend return the same group.
func InitDistributed(backend DistributedBackend, strict bool) (*Group, error) {
	const op = "InitDistributed"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	name := C.CString(string(backend))
	defer C.free(unsafe.Pointer(name))
	var ctx unsafe.Pointer
	if e := C.mlxg_group_init(&ctx, C.bool(strict), name); e != nil {
		return nil, opError(op, takeText(e))
	}
	g := newGroup(ctx)
	if strict && g.backend == "" { // MLX says so for some backends only
		return nil, opError(op, fmt.Errorf("the backend %q is not there, or this process was not started for it", backend))
	}
	return g, nil
}

func newGroup(ctx unsafe.Pointer) *Group {
	g := &Group{
		ctx:     ctx,
		rank:    int(C.mlxg_group_rank(ctx)),
		size:    int(C.mlxg_group_size(ctx)),
		backend: DistributedBackend(C.GoString(C.mlxg_group_backend(ctx))),
	}
	runtime.AddCleanup(g, func(ctx unsafe.Pointer) {
		C.mlxg_group_free(ctx)
	}, ctx)
	return g
}

// Rank is the number of this process in the group, from 0.
func (g *Group) Rank() int { return g.rank }

// Size is the number of processes in the group.
func (g *Group) Size() int { return g.size }

// Backend is what carries the group's messages, "" for a group of one.
func (g *Group) Backend() DistributedBackend { return g.backend }

// Split returns the group of those processes that gave the same color, which is 0 or
// more. Their ranks are in the order of their keys; with negative ones, in that of their
// ranks here. Rings cannot be split.
func (g *Group) Split(color, key int) (*Group, error) {
	const op = "Split"
	if g == nil {
		return nil, opError(op, errNoGroup)
	}
	c, err := cInts([]int{color, key})
	if err == nil && color < 0 {
		err = fmt.Errorf("the color %d is negative", color)
	}
	if err != nil {
		return nil, opError(op, err)
	}
	defer runtime.KeepAlive(g)
	var ctx unsafe.Pointer
	if e := C.mlxg_group_split(&ctx, g.ctx, c[0], c[1]); e != nil {
		return nil, opError(op, takeText(e))
	}
	return newGroup(ctx), nil
}

var errNoGroup = errors.New("the group is nil")

// AllSum gives every process the sum of the arrays that the processes pass, which have
// one shape and dtype. Its gradient is that of the process's own part: what the others
// pass counts as constant. The gradient of a sum of losses is had by AverageGradients.
func (g *Group) AllSum(x *Array) *Array {
	return g.collective("all_sum", C.MLXG_ALL_SUM, x)
}

// AllMax gives every process the largest elements of the arrays that the processes pass,
// which have one shape and dtype. It has no gradient.
func (g *Group) AllMax(x *Array) *Array {
	return g.collective("all_max", C.MLXG_ALL_MAX, x)
}

// AllMin gives every process the smallest elements of the arrays that the processes pass,
// which have one shape and dtype. It has no gradient.
func (g *Group) AllMin(x *Array) *Array {
	return g.collective("all_min", C.MLXG_ALL_MIN, x)
}

// AllGather gives every process the arrays that the processes pass, joined along the
// first axis in the order of their ranks. They have one shape and dtype; a scalar counts
// as an array of one. Its gradient is that of the process's own part.
func (g *Group) AllGather(x *Array) *Array {
	if x.Err() == nil && x.NDim() == 0 {
		x = x.Reshape(1)
		defer x.Free()
	}
	return g.collective("all_gather", C.MLXG_ALL_GATHER, x)
}

// SumScatter gives every process its part of the sum of the arrays that the processes
// pass: the first axis is cut into as many parts as there are processes. MLX has it for
// NCCL; elsewhere it is an AllSum of which the process keeps its part.
func (g *Group) SumScatter(x *Array) *Array {
	const op = "sum_scatter"
	switch {
	case g == nil || x.Err() != nil:
	case x.NDim() == 0 || x.Dim(0)%g.size != 0:
		return invalid(opError(op, fmt.Errorf("the first axis cannot be cut into %d equal parts", g.size), x))
	case g.size > 1 && g.backend != NCCLBackend:
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
	return g.collective(op, C.MLXG_SUM_SCATTER, x)
}

// Send gives x, after it has been sent to the process with the rank dst: it is sent when
// the result is evaluated. A ring connects neighbours only.
func (g *Group) Send(x *Array, dst int) *Array {
	return g.directed("send", x, dst, func(x unsafe.Pointer) C.mlxg_result { return C.mlxg_group_send(x, C.int(dst), g.ctx) })
}

// Recv receives an array of this dtype and shape from the process with the rank src, when
// it is evaluated. A ring connects neighbours only.
func (g *Group) Recv(src int, d DType, shape ...int) *Array {
	const op = "recv"
	err := g.checkPeer(src)
	if err == nil {
		err = checkNew(d, shape)
	}
	if err != nil {
		return invalid(opError(op, err))
	}
	defer runtime.KeepAlive(g)
	c := cShape(shape)
	return wrap(op, C.mlxg_group_receive(&c[0], C.size_t(len(shape)), C.int(d.c()), C.int(src), g.ctx))
}

// RecvLike receives an array of x's dtype and shape from the process with the rank src,
// when it is evaluated. A ring connects neighbours only.
func (g *Group) RecvLike(x *Array, src int) *Array {
	return g.directed("recv_like", x, src, func(x unsafe.Pointer) C.mlxg_result { return C.mlxg_group_receive_like(x, C.int(src), g.ctx) })
}

func (g *Group) collective(op string, what C.int, x *Array) *Array {
	if g == nil {
		return invalid(opError(op, errNoGroup, x))
	}
	ctx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	defer runtime.KeepAlive(g)
	return wrap(op, C.mlxg_group_collect(what, ctx, g.ctx), x)
}

func (g *Group) directed(op string, x *Array, peer int, f func(x unsafe.Pointer) C.mlxg_result) *Array {
	ctx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	if err := g.checkPeer(peer); err != nil {
		return invalid(opError(op, err, x))
	}
	defer runtime.KeepAlive(g)
	return wrap(op, f(ctx), x)
}

// checkPeer says what MLX would find out too late, on a thread of its own.
func (g *Group) checkPeer(peer int) error {
	switch {
	case g == nil:
		return errNoGroup
	case peer < 0 || peer >= g.size:
		return fmt.Errorf("there is no process %d in a group of %d", peer, g.size)
	case peer == g.rank:
		return fmt.Errorf("the process %d is this one", peer)
	case g.backend == RingBackend && peer != (g.rank+1)%g.size && peer != (g.rank+g.size-1)%g.size:
		return fmt.Errorf("the process %d is no neighbour of %d in a ring of %d", peer, g.rank, g.size)
	}
	return nil
}

// messageBytes is how much AverageGradients sends at a time: enough that the time for a
// message is that of its bytes, and little enough that the copy of them is no burden.
const messageBytes = 32 << 20

// AverageGradients gives, for each array, the mean of the arrays that the processes pass
// in its place: what a step on the whole of a batch needs, when every process has the
// gradients of its share. The processes pass lists of the same shapes and dtypes, which
// are floating-point or complex. Arrays of one dtype are summed together, in few messages.
//
// If it fails, the results carry the error.
func (g *Group) AverageGradients(grads []*Array) []*Array {
	const op = "AverageGradients"
	h, err := acquireAll(op, grads)
	if err != nil {
		return failed(len(grads), err)
	}
	defer h.release()
	if g == nil {
		return failed(len(grads), opError(op, errNoGroup))
	}
	for _, a := range grads {
		if d := a.DType(); !d.IsFloating() && d != Complex64 {
			return failed(len(grads), opError(op, errors.New("the mean of integers is none"), a))
		}
	}
	means := make([]*Array, len(grads))
	for _, message := range messages(grads) {
		g.averageMessage(message, grads, means)
	}
	return means
}

// messages puts together the numbers of the arrays that go into one message.
func messages(arrays []*Array) [][]int {
	var all [][]int
	open := map[DType]int{} // the message to be filled
	bytes := map[DType]int{}
	for i, a := range arrays {
		d := a.DType()
		m, ok := open[d]
		if !ok || bytes[d]+a.NBytes() > messageBytes {
			m = len(all)
			open[d], bytes[d] = m, 0
			all = append(all, nil)
		}
		all[m] = append(all[m], i)
		bytes[d] += a.NBytes()
	}
	return all
}

// averageMessage sets the means of the arrays of one message.
func (g *Group) averageMessage(message []int, grads, means []*Array) {
	var temporary []*Array
	keep := func(a *Array) *Array { temporary = append(temporary, a); return a }
	defer func() {
		for _, a := range temporary {
			a.Free()
		}
	}()
	mean := func(a *Array) *Array { return keep(g.AllSum(a)).DivScalar(float64(g.size)) }
	if len(message) == 1 {
		means[message[0]] = mean(grads[message[0]])
		return
	}
	var flat []*Array
	var ends []int
	end := 0
	for _, i := range message {
		flat = append(flat, keep(grads[i].Reshape(grads[i].Size())))
		end += grads[i].Size()
		ends = append(ends, end)
	}
	parts := keep(mean(keep(Concatenate(0, flat...)))).SplitAt(0, ends[:len(ends)-1]...)
	for k, i := range message {
		means[i] = keep(parts[k]).Reshape(grads[i].Shape()...)
	}
}
