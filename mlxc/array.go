package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Array is an n-dimensional array of MLX: a node of a lazy graph that is
// computed when its value is asked for.
//
// An array is valid, or carries the error of the operation that should have made
// it. Every operation on an invalid array gives an invalid array with the same
// error, so a chain of operations needs one check at its end; whatever leaves the
// graph (Eval, ToSlice, VJP, …) returns the error. Of an invalid array Shape is
// nil, NDim, Dim and Size are 0, and DType is Invalid.
//
// Arrays are immutable and may be used by any number of goroutines. Their memory
// is MLX's. It is given back by Free, by the end of the scope that owns the array
// (see WithScope), or, as a net, some time after the array became unreachable.
//
// The nil *Array is invalid too, with ErrNil.
type Array struct {
	ctx unsafe.Pointer // the handle: *mlx::core::array, nil if invalid
	err *error         // why it is invalid, nil if it is not
	own bool           // its elements were copied from Go's memory

	description atomic.Pointer[description] // once somebody has asked for it

	// The number of calls that hold ctx, and the bits below.
	users atomic.Int32

	// Who frees it: a scope, in whose list it has a place, or the collector, through
	// cleanup.
	place   int32
	owner   sync.Mutex
	scope   *scope
	cleanup *runtime.Cleanup
}

// The bits of users are far above any number of concurrent calls. An invalid array has
// those of a destroyed one.
const (
	freedBit     = 1 << (28 + iota) // Free was called
	destroyedBit                    // and nobody held the handle any more
	profiledBit                     // the profile of arrays has it
)

// acquire holds the handle for one call; the caller must release. A handle is
// destroyed only when nobody holds it, so a Free beside a running call is safe.
func (a *Array) acquire() (unsafe.Pointer, error) {
	if a == nil || a.users.Add(1)&freedBit != 0 {
		return a.refuse()
	}
	collect()
	return a.ctx, nil
}

// refuse says why acquire did not hold the handle.
func (a *Array) refuse() (unsafe.Pointer, error) {
	if a == nil {
		return nil, ErrNil
	}
	a.release()
	if a.err != nil {
		return nil, *a.err
	}
	return nil, ErrFreed
}

func (a *Array) release() {
	if users := a.users.Add(-1); users&freedBit != 0 {
		a.destroy(users)
	}
	runtime.KeepAlive(a)
}

// destroy destroys the handle after Free, if it was the last user that left users behind.
// There may be several of those, one after the other: an acquire and release that come
// later find the same count.
func (a *Array) destroy(users int32) {
	if users&^profiledBit != freedBit || !a.users.CompareAndSwap(users, users|destroyedBit) {
		return
	}
	if users&profiledBit != 0 {
		unprofile(a.ctx)
	}
	garbage.free([]C.uintptr_t{word(a.ctx)})
}

// Free gives the array's memory back, as far as no other array or pending
// computation needs it. Later uses of the array fail with ErrFreed. Calling it
// again, or on an invalid array, does nothing.
func (a *Array) Free() {
	if a == nil || a.ctx == nil {
		return
	}
	if !a.markFreed() {
		return
	}
	a.owner.Lock()
	if a.cleanup != nil {
		a.cleanup.Stop()
	}
	if a.scope != nil {
		a.scope.remove(a)
		a.scope = nil
	}
	a.owner.Unlock()
	a.release()
}

// markFreed sets the bit and holds the handle, or tells that it was set before.
func (a *Array) markFreed() bool {
	for {
		u := a.users.Load()
		if u&freedBit != 0 {
			return false
		}
		if a.users.CompareAndSwap(u, u+freedBit+1) {
			return true
		}
	}
}

// newArray takes ownership of a handle.
func newArray(ctx unsafe.Pointer, scopeID uintptr) *Array {
	a := &Array{ctx: ctx}
	if profiling.Load() > 0 {
		a.profile()
	}
	if s := scopeByID(scopeID); s != nil {
		s.add(a)
	} else {
		a.net()
	}
	return a
}

// newArrays takes ownership of several handles. It does not keep their slice.
func newArrays(handles []unsafe.Pointer, scopeID uintptr) []*Array {
	out := make([]*Array, len(handles))
	for i, ctx := range handles {
		out[i] = newArray(ctx, scopeID)
	}
	return out
}

// net registers the array with the collector. The caller holds owner, or has the
// array to itself.
func (a *Array) net() {
	dropped := func(ctx unsafe.Pointer) { garbage.later(ctx) }
	if a.users.Load()&profiledBit != 0 {
		dropped = func(ctx unsafe.Pointer) {
			unprofile(ctx)
			garbage.later(ctx)
		}
	}
	cleanup := runtime.AddCleanup(a, dropped, a.ctx)
	a.cleanup = &cleanup
}

// invalid makes an array that carries err.
func invalid(err error) *Array {
	a := &Array{err: &err}
	a.users.Store(freedBit | destroyedBit)
	return a
}

// InvalidArray returns an array that carries err, for packages that build operations
// of their own. It panics if err is nil, since there would be nothing to carry.
func InvalidArray(err error) *Array {
	if err == nil {
		panic("mlxc: InvalidArray needs an error")
	}
	return invalid(err)
}

// wrap makes the array of a finished call, or the invalid array of a failed one.
func wrap(op string, r C.mlxg_result, operands ...*Array) *Array {
	if r.err != nil {
		return invalid(opError(op, takeText(r.err), operands...))
	}
	return newArray(r.ctx, uintptr(r.scope))
}

// wrapAll does the same for a call with several results.
func wrapAll(op string, r C.mlxg_results, operands ...*Array) ([]*Array, error) {
	if r.err != nil {
		return nil, opError(op, takeText(r.err), operands...)
	}
	if r.n <= C.MLXG_FEW {
		return newArrays(r.few[:r.n], uintptr(r.scope)), nil
	}
	defer C.free(unsafe.Pointer(r.items))
	return newArrays(unsafe.Slice(r.items, r.n), uintptr(r.scope)), nil
}

// takeText frees a message of C and gives it as an error.
func takeText(p *C.char) error { return mlxError(takeString(p)) }

// takeString frees a text of C and gives it as Go's.
func takeString(p *C.char) string {
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}

// Err returns the error that the array carries, ErrFreed if it was freed, or nil.
func (a *Array) Err() error {
	if a != nil && a.users.Load()&freedBit == 0 {
		return nil
	}
	_, err := a.acquire()
	if err == nil {
		a.release()
	}
	return err
}

// description is what never changes of an array.
type description struct {
	shape []int
	size  int
	dtype DType
	axes  [4]int // where shape is, if it is not longer
}

var undescribed = &description{dtype: Invalid}

// described is the description of a valid array, and the zero one of any other.
func (a *Array) described() *description {
	if a != nil && a.users.Load()&freedBit == 0 {
		if d := a.description.Load(); d != nil {
			return d
		}
	}
	ctx, err := a.acquire()
	if err != nil {
		return undescribed
	}
	defer a.release()
	d := a.description.Load()
	if d == nil {
		i := C.mlxg_array_info(ctx)
		d = &description{size: int(i.size), dtype: dtypeFromC(int(i.dtype))}
		d.shape = appendInts(d.axes[:0], i)
		a.description.Store(d)
	}
	return d
}

// Shape returns the size of every axis; the caller owns the slice. It is empty
// for a scalar and nil for an invalid array.
func (a *Array) Shape() []int { return slices.Clone(a.described().shape) }

func appendInts(shape []int, i C.mlxg_info) []int {
	for _, n := range unsafe.Slice(i.shape, i.ndim) {
		shape = append(shape, int(n))
	}
	return shape
}

// shapeOf is the shape behind a handle that the caller holds.
func shapeOf(ctx unsafe.Pointer) []int { return appendInts(nil, C.mlxg_array_info(ctx)) }

// Dim returns the size of one axis, counted from the end if negative. It is 0 if
// there is no such axis or the array is invalid.
func (a *Array) Dim(axis int) int {
	shape := a.described().shape
	if axis < 0 {
		axis += len(shape)
	}
	if axis < 0 || axis >= len(shape) {
		return 0
	}
	return shape[axis]
}

// axis counts an axis from the front, or says that there is none.
func (a *Array) axis(axis int) (int, error) {
	n := a.NDim()
	if axis < -n || axis >= n {
		return 0, fmt.Errorf("there is no axis %d: the array has %d", axis, n)
	}
	return (axis + n) % n, nil
}

// NDim returns the number of axes.
func (a *Array) NDim() int { return len(a.described().shape) }

// Size returns the number of elements.
func (a *Array) Size() int { return a.described().size }

// DType returns the type of the elements.
func (a *Array) DType() DType { return a.described().dtype }

// NBytes returns the size of the elements in bytes, without strides or padding.
func (a *Array) NBytes() int { return a.Size() * a.DType().Size() }

// String evaluates the array and prints it as MLX does, or prints its error. Inside
// a transform that works on stand-ins there is no value to print, and it says so.
func (a *Array) String() string {
	ctx, err := a.acquire()
	if err != nil {
		return fmt.Sprintf("array(invalid: %v)", err)
	}
	defer a.release()
	var text *C.char
	var e *C.char
	onSoundThread(func() { e = C.mlxg_tostring(ctx, &text) })
	if e != nil {
		return fmt.Sprintf("array(%s without a value: %v)", describe(a.Shape(), a.DType()), takeText(e))
	}
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// FromSlice makes an array with a copy of data in row-major order. Without a
// shape it has one axis of len(data); FromSlice(data, 2, 3) has two. The dtype is
// that of T. The shape must hold exactly len(data) elements.
func FromSlice[T Element](data []T, shape ...int) *Array {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	n, err := checkShape(d, shape)
	if err == nil && n != len(data) {
		err = fmt.Errorf("the shape %s holds %d elements, the slice has %d", shapeText(shape), n, len(data))
	}
	if err != nil {
		return invalid(shapeError("FromSlice", err, []DType{d}, slices.Clone(shape)))
	}
	return newLeaf("FromSlice", unsafe.Pointer(unsafe.SliceData(data)), shape, d)
}

// Scalar makes an array without axes.
func Scalar[T Element](value T) *Array {
	return newLeaf("Scalar", unsafe.Pointer(&value), nil, dtypeOf[T]())
}

func newLeaf(op string, data unsafe.Pointer, shape []int, d DType) *Array {
	if err := Check(); err != nil {
		return invalid(opError(op, err))
	}
	if data == nil {
		// An empty array: MLX copies nothing, but wants an address.
		data = unsafe.Pointer(&emptyData)
	}
	dims := cShape(shape)
	if n, err := checkShape(d, shape); err == nil && n*d.Size() >= pacedSize {
		defer pace()
	}
	a := wrap(op, C.mlxg_array_new(data, unsafe.SliceData(dims), C.int(len(shape)), C.int(d.c())))
	a.own = true
	return a
}

// newUnfilledLeaf makes an array whose elements, in row-major order, the caller writes to data
// before it hands the array on. The shape has passed checkShape.
func newUnfilledLeaf(op string, shape []int, d DType) (a *Array, data []byte) {
	if err := Check(); err != nil {
		return invalid(opError(op, err)), nil
	}
	dims := cShape(shape)
	var p unsafe.Pointer
	a = wrap(op, C.mlxg_array_unfilled(unsafe.SliceData(dims), C.int(len(shape)), C.int(d.c()), &p))
	if a.Err() != nil {
		return a, nil
	}
	a.own = true
	if a.NBytes() >= pacedSize {
		pace()
	}
	return a, unsafe.Slice((*byte)(p), a.NBytes())
}

var emptyData [16]byte

// ToSlice evaluates a and returns a copy of its elements in row-major order,
// whatever its strides. T must be the Go type of a's dtype: convert first with
// AsType.
func ToSlice[T Element](a *Array) ([]T, error) {
	ctx, err := a.acquire()
	if err != nil {
		return nil, opError("ToSlice", err)
	}
	defer a.release()
	// Held, the array keeps its shape and dtype even if it is freed meanwhile.
	d, shape, dtype := dtypeOf[T](), shapeOf(ctx), dtypeFromC(int(C.mlxg_array_info(ctx).dtype))
	fail := func(err error) ([]T, error) {
		return nil, shapeError("ToSlice", err, []DType{dtype}, shape)
	}
	if dtype != d {
		return fail(fmt.Errorf("the elements are not %v: convert with AsType first", d))
	}
	n, err := checkShape(d, shape)
	if err != nil {
		return fail(err)
	}
	out := make([]T, n)
	dst := unsafe.Pointer(unsafe.SliceData(out))
	if len(out) == 0 {
		dst = unsafe.Pointer(&emptyData)
	}
	var e *C.char
	onSoundThread(func() { e = C.mlxg_read(ctx, dst, C.size_t(len(out)*d.Size())) })
	if e != nil {
		return fail(takeText(e))
	}
	releaseFunctions()
	pace()
	return out, nil
}

// Item evaluates a, which must have exactly one element, and returns it. T must be the Go
// type of a's dtype, as for ToSlice.
func Item[T Element](a *Array) (T, error) {
	var zero T
	ctx, err := a.acquire()
	if err != nil {
		return zero, opError("Item", err)
	}
	one := C.mlxg_array_info(ctx).size == 1
	a.release()
	if !one {
		return zero, opError("Item", errors.New("the array does not have exactly one element"), a)
	}
	s, err := ToSlice[T](a)
	if err != nil {
		return zero, err
	}
	return s[0], nil
}

// maxBytes is the address space of today's processors. MLX counts elements in 64
// bits without looking for overflow.
const maxBytes = 1 << 47

// checkShape returns the number of elements, or an error if an axis is negative,
// too long for MLX's 32 bits, or all of them together for any memory.
func checkShape(d DType, shape []int) (int, error) {
	n := 1
	for _, axis := range shape {
		if axis < 0 {
			return 0, fmt.Errorf("the shape %s has a negative axis", shapeText(shape))
		}
		if axis > math.MaxInt32 {
			return 0, fmt.Errorf("the shape %s has an axis above 2³¹−1", shapeText(shape))
		}
		if axis != 0 && n > maxBytes/d.Size()/axis {
			return 0, fmt.Errorf("the shape %s holds more elements than memory can", shapeText(shape))
		}
		n *= axis
	}
	return n, nil
}

// checkNew checks the dtype and shape of an array to be made.
func checkNew(d DType, shape []int) error {
	if !d.valid() {
		return fmt.Errorf("the dtype %v is invalid", d)
	}
	_, err := checkShape(d, shape)
	return err
}

// cShape converts a shape that checkShape has passed. The result is never empty: C
// gets an address.
func cShape(shape []int) []C.int {
	out := make([]C.int, max(len(shape), 1))
	for i, n := range shape {
		out[i] = C.int(n)
	}
	return out
}

// cInts converts what was not checked: axes, positions. The result is never empty: C gets an address.
func cInts(v []int) ([]C.int, error) {
	if err := check32(v...); err != nil {
		return nil, err
	}
	return cShape(v), nil
}
