package compare

import (
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// benchSide is one of the computations that a row times.
type benchSide struct {
	// build makes the graph on a set of operands: the arrays that must be there before, and those whose
	// evaluation is timed.
	build func(operands) (before, timed []*mlxc.Array, err error)
	sets  []operands
	queue *benchQueue // Nil on a CPU.

	copies, extraMemory int
	submit              time.Duration // Of one evaluation.
	// Of each repetition, as in report.Timing.
	device, wall, builds []float64
}

// gradientSide is the pass of f.
func gradientSide(f mlxc.Func, c BenchCase, pass report.Pass, sets []operands) *benchSide {
	return &benchSide{sets: sets, build: func(data operands) (before, timed []*mlxc.Array, err error) {
		outputs, grads, err := vjp(f, arrays(data.inputs), c.differentiated(), arrays(data.cotangents))
		if err != nil {
			return nil, nil, err
		}
		if c.Dense {
			for i := range grads {
				grads[i] = grads[i].Contiguous()
			}
		}
		if pass == report.Step {
			return nil, slices.Concat(outputs, grads), nil
		}
		return outputs, grads, nil
	}}
}

// addSide is the sum of two arrays of n elements, and how many bytes it moves.
func addSide(n int, dtype mlxc.DType) (*benchSide, int, error) {
	x := operand{array: mlxc.RandomNormal(mlxc.RandomKey(1), dtype, n)}
	y := operand{array: mlxc.RandomNormal(mlxc.RandomKey(2), dtype, n)}
	bytes := 3 * n * dtype.Size()
	sets, err := manySets(operands{inputs: []operand{x, y}})
	return &benchSide{sets: sets, build: func(data operands) (before, timed []*mlxc.Array, err error) {
		sum := data.inputs[0].array.Add(data.inputs[1].array)
		return nil, []*mlxc.Array{sum}, nil
	}}, bytes, err
}

// evaluate computes everything once, without a clock.
func (s *benchSide) evaluate() (err error) {
	mlxc.WithScope(func() {
		var before, timed []*mlxc.Array
		if before, timed, err = s.build(s.sets[0]); err == nil {
			err = mlxc.Eval(slices.Concat(before, timed)...)
		}
	})
	return err
}

const (
	// A repetition is long against the clock's resolution, the start of the first evaluation and the
	// synchronisation at the end, which the device waits for.
	repetitionTime = 10 * time.Millisecond
	mostCopies     = 64
	// The share of memory that the results of a repetition may hold, with what is beside them. MLX lets
	// nobody submit more where memory is short.
	copiesShare = 8
)

// calibrate measures memory and finds how many copies a repetition has, on the way warming everything up.
func (s *benchSide) calibrate() error {
	results, err := s.measureMemory()
	if err != nil {
		return err
	}
	most := min(mostCopies, mlxc.MemoryLimit()/copiesShare/max(1, results+s.extraMemory))
	s.copies = 1
	for range 3 { // Few copies have much of the first one's start in their mean.
		b, err := s.batch(nil)
		if err != nil {
			return err
		}
		if s.copies == 1 {
			s.submit = b.submit
		}
		s.copies = max(1, min(most, int(repetitionTime/max(1, b.evaluate))))
	}
	if s.queue == nil {
		return nil
	}
	for {
		b, err := s.batch(s.queue)
		if err != nil || b.queued || s.queue.links == mostLinks {
			return err
		}
		s.queue.lengthen()
	}
}

// measureMemory sets extraMemory from one evaluation, and returns the size of its results.
func (s *benchSide) measureMemory() (results int, err error) {
	mlxc.WithScope(func() {
		if err = mlxc.Synchronize(); err != nil {
			return
		}
		active := mlxc.ActiveMemory()
		var before, timed []*mlxc.Array
		if before, timed, err = s.build(s.sets[0]); err != nil {
			return
		}
		if len(before) > 0 {
			if err = mlxc.Eval(before...); err != nil {
				return
			}
		}
		mlxc.ResetPeakMemory()
		if err = mlxc.Eval(timed...); err != nil {
			return
		}
		if err = mlxc.Synchronize(); err != nil {
			return
		}
		for _, a := range slices.Concat(before, timed) {
			results += a.NBytes()
		}
		// A result may be an argument, such as a cotangent that is a gradient at once.
		results = min(results, max(0, mlxc.ActiveMemory()-active))
		s.extraMemory = mlxc.PeakMemory() - active - results
	})
	return results, err
}

// measure adds a repetition.
func (s *benchSide) measure() error {
	b, err := s.batch(nil)
	if err != nil {
		return err
	}
	device := b.evaluate
	if s.queue != nil {
		// Where the device gets through what is queued before the host has submitted all, they run side by
		// side, as without a queue.
		if q, err := s.batch(s.queue); err != nil {
			return err
		} else if q.queued {
			device = q.evaluate
		}
	}
	s.builds, s.wall, s.device = append(s.builds, micros(b.build)), append(s.wall, micros(b.evaluate)), append(s.device, micros(device))
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// batchTimes are the mean times of a copy.
type batchTimes struct {
	build    time.Duration // Of the graph, on the host.
	submit   time.Duration // Until the host has handed everything to the device.
	evaluate time.Duration // Until the device has done everything.
	// queued says that evaluate is the device's alone: it had everything at hand when it began.
	queued bool
}

// batch builds the copies, computes what must be there before, and then evaluates them, one after the other
// without waiting in between: the host prepares one while the device computes another, or all before the
// device is through with the queue.
func (s *benchSide) batch(queue *benchQueue) (times batchTimes, err error) {
	mlxc.WithScope(func() { times, err = s.batchIn(queue) })
	return times, err
}

func (s *benchSide) batchIn(queue *benchQueue) (times batchTimes, err error) {
	copies := time.Duration(s.copies)
	var before []*mlxc.Array
	timed := make([][]*mlxc.Array, s.copies)
	start := time.Now()
	for i := range timed {
		var first []*mlxc.Array
		if first, timed[i], err = s.build(s.sets[i%len(s.sets)]); err != nil {
			return times, err
		}
		before = append(before, first...)
	}
	times.build = time.Since(start) / copies
	if len(before) > 0 {
		if err := mlxc.Eval(before...); err != nil {
			return times, err
		}
	}
	if err := mlxc.Synchronize(); err != nil {
		return times, err
	}
	var ahead *mlxc.Array
	if queue != nil {
		if ahead, err = queue.start(); err != nil {
			return times, err
		}
	}
	start = time.Now()
	for _, a := range timed {
		if err := mlxc.AsyncEval(a...); err != nil {
			return times, err
		}
	}
	times.submit = time.Since(start) / copies
	if ahead != nil {
		times.queued = !ahead.Available()
		if err := mlxc.Eval(ahead); err != nil { // Waits for it, and not for what comes after.
			return times, err
		}
		start = time.Now()
	}
	if err := mlxc.Synchronize(); err != nil {
		return times, err
	}
	times.evaluate = time.Since(start) / copies
	return times, nil
}

// timing summarises the repetitions; nil if there are none.
func (s *benchSide) timing() *report.Timing {
	if s == nil || len(s.device) == 0 {
		return nil
	}
	return report.NewTiming(report.Timing{
		Repetitions: s.device, WallRepetitions: s.wall, BuildRepetitions: s.builds,
		Submit: micros(s.submit), Copies: s.copies, ExtraMemory: s.extraMemory,
	})
}

// benchSets makes random operands on the device, contiguous and computed.
func benchSets(op string, c BenchCase, dtype mlxc.DType) ([]operands, error) {
	rng := rngFor(op, c.Name)
	normal := func(deviation float64, dtype mlxc.DType, shape []int) operand {
		a := mlxc.RandomNormal(mlxc.RandomKey(rng.Uint64()), dtype, shape...)
		if deviation != 1 {
			a = a.MulScalar(deviation)
		}
		return operand{array: a}
	}
	var data operands
	for _, in := range c.Inputs {
		if in.Kind == Real || in.Kind == Constant {
			deviation, given := c.Deviations[in.Name]
			if !given {
				deviation = 1
			}
			data.inputs = append(data.inputs, normal(deviation, dtype, in.Shape))
			continue
		}
		data.inputs = append(data.inputs, operand{array: toArray(in.Values(rng, in.Shape), in.Kind.dtype(dtype), in.Shape)})
	}
	for _, out := range c.Outputs {
		ct := normal(1, out.dtype(dtype), out.Shape)
		if len(out.Shape) == 0 {
			ct = operand{array: mlxc.Scalar[float32](1).AsType(out.dtype(dtype))} // As of a loss in training.
		}
		data.cotangents = append(data.cotangents, ct)
	}
	return manySets(data)
}

const (
	// Sets together are larger than caches, so that a copy finds nothing of the last there.
	allSets  = 128 << 20
	mostSets = 16
)

// manySets evaluates operands, and makes others of them: their negatives, but of single numbers.
func manySets(data operands) ([]operands, error) {
	bytes := 0
	for _, o := range slices.Concat(data.inputs, data.cotangents) {
		bytes += o.array.NBytes()
	}
	sets := []operands{data}
	for len(sets) < mostSets && len(sets)*bytes < allSets {
		sets = append(sets, negative(sets[len(sets)-1]))
	}
	for _, set := range sets {
		if err := mlxc.Eval(slices.Concat(arrays(set.inputs), arrays(set.cotangents))...); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// negative has new arrays for those of real numbers.
func negative(data operands) operands {
	of := func(os []operand) []operand {
		out := slices.Clone(os)
		for i, o := range os {
			if o.array.DType().IsFloating() && o.array.NDim() > 0 {
				out[i].array = o.array.Neg()
			}
		}
		return out
	}
	return operands{inputs: of(data.inputs), cotangents: of(data.cotangents)}
}
