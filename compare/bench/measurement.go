package bench

import (
	"errors"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// measurement times one of the computations of a row: our gradient, MLX's gradient, or the addition.
type measurement struct {
	// build makes the graph on a set of operands. It returns the arrays to evaluate in advance, and the arrays whose
	// evaluation is timed.
	build func(operands) (before, timed []*mlxc.Array, err error)
	sets  []operands
	busy  *busyWork // nil on a CPU

	copies, extraMemory int
	submit              time.Duration // of one evaluation
	// In microseconds, for each repetition; see report.Timing.
	device, wall, builds []float64
}

// gradientMeasurement times a pass of f.
func gradientMeasurement(f mlxc.Func, c Case, pass report.Pass, sets []operands) *measurement {
	return &measurement{sets: sets, build: func(data operands) (before, timed []*mlxc.Array, err error) {
		outputs, grads, err := arrays.VJP(f, data.inputs, c.Differentiated(), data.cotangents)
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

// addMeasurement times the sum of two arrays of n elements. It also returns the number of bytes that the sum moves.
func addMeasurement(n int, dtype mlxc.DType) (*measurement, int, error) {
	x := mlxc.RandomNormal(mlxc.RandomKey(1), dtype, n)
	y := mlxc.RandomNormal(mlxc.RandomKey(2), dtype, n)
	bytes := 3 * n * dtype.Size()
	sets, err := manySets(operands{inputs: []*mlxc.Array{x, y}})
	return &measurement{sets: sets, build: func(data operands) (before, timed []*mlxc.Array, err error) {
		sum := data.inputs[0].Add(data.inputs[1])
		return nil, []*mlxc.Array{sum}, nil
	}}, bytes, err
}

// evaluate computes everything once, untimed.
func (m *measurement) evaluate() (err error) {
	mlxc.WithScope(func() {
		var before, timed []*mlxc.Array
		if before, timed, err = m.build(m.sets[0]); err == nil {
			err = mlxc.Eval(slices.Concat(before, timed)...)
		}
	})
	return err
}

const (
	// A repetition is long compared with the resolution of the clock, the start of the first evaluation and the
	// synchronization at the end.
	repetitionTime = 10 * time.Millisecond
	maxCopies      = 64
	// In the recorded runs on CUDA (docs/h200), the host never submitted 18 or more copies before the busy work ended,
	// so the time of the device alone was unknown.
	maxCopiesAhead = 16
	// A repetition builds at least this number of graphs, unless that takes more than repetitionTime. The first one takes
	// several times as long as the others, because the host's caches have lost the code during the wait for the device.
	// So the means of cases with different numbers of copies can be compared.
	minBuilds = maxCopiesAhead
	// The results and temporary arrays of a repetition take at most 1/memoryShare of the memory limit. Near the limit
	// MLX blocks the host until memory is free.
	memoryShare = 8
	maxTries    = 3  // with busy work, for each repetition
	errorShare  = 10 // the time of the device alone may be wrong by 1/errorShare
	maxPolling  = 10 * time.Second
)

// calibrate measures the memory of one evaluation and chooses the number of copies in a repetition. It also warms up
// caches and clocks.
func (m *measurement) calibrate() error {
	results, err := m.measureMemory()
	if err != nil {
		return err
	}
	limit := min(maxCopies, mlxc.MemoryLimit()/memoryShare/max(1, results+m.extraMemory))
	if m.busy != nil {
		limit = min(limit, maxCopiesAhead)
	}
	m.copies = 1
	for range 3 { // with few copies, the start of the first one dominates the mean
		b, err := m.batch(nil)
		if err != nil {
			return err
		}
		if m.copies == 1 {
			m.submit = b.submit
		}
		if b.evaluate > 10*repetitionTime { // the start of the evaluation is negligible
			m.busy = nil
			return nil
		}
		m.copies = max(1, min(limit, int(repetitionTime/max(1, b.evaluate))))
	}
	if m.busy == nil {
		return nil
	}
	for {
		b, err := m.batch(m.busy)
		if err != nil || b.deviceOnly || m.busy.products == maxProducts {
			return err
		}
		m.busy.lengthen()
	}
}

// measureMemory sets extraMemory from one evaluation and returns the size of the results in bytes.
func (m *measurement) measureMemory() (results int, err error) {
	mlxc.WithScope(func() {
		if err = mlxc.Synchronize(); err != nil {
			return
		}
		active := mlxc.ActiveMemory()
		var before, timed []*mlxc.Array
		if before, timed, err = m.build(m.sets[0]); err != nil {
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
		// A result may share the memory of an operand, as a gradient that is the cotangent does.
		results = min(results, max(0, mlxc.ActiveMemory()-active))
		m.extraMemory = mlxc.PeakMemory() - active - results
	})
	return results, err
}

// measure adds a repetition.
func (m *measurement) measure() error {
	b, err := m.batch(nil)
	if err != nil {
		return err
	}
	device := b.evaluate
	// The time without busy work is used if no try with it measures the device alone.
	for try := 0; m.busy != nil && try < maxTries; try++ {
		if q, err := m.batch(m.busy); err != nil {
			return err
		} else if q.deviceOnly {
			device = q.evaluate
			break
		}
	}
	m.builds = append(m.builds, micros(b.build))
	m.wall = append(m.wall, micros(b.evaluate))
	m.device = append(m.device, micros(device))
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// batchTimes holds mean times per copy.
type batchTimes struct {
	build    time.Duration // building the graph on the host; see meanOfBuilds
	submit   time.Duration // until the host has submitted everything
	evaluate time.Duration // until the device has computed everything
	// deviceOnly is set if evaluate is the time of the device alone: the host had submitted all copies before the device
	// began the first, and the begin and the end are known within 1/errorShare of the time.
	deviceOnly bool
}

// batch builds the copies, evaluates their advance arrays, and then evaluates the copies without waiting between them.
// The host prepares one copy while the device computes another. With busy work, the host prepares all copies before the
// device computes the first.
func (m *measurement) batch(busy *busyWork) (times batchTimes, err error) {
	mlxc.WithScope(func() { times, err = m.batchIn(busy) })
	return times, err
}

func (m *measurement) batchIn(busy *busyWork) (times batchTimes, err error) {
	copies := time.Duration(m.copies)
	var before []*mlxc.Array
	timed := make([][]*mlxc.Array, m.copies)
	times.build, err = meanOfBuilds(m.copies, func(i int) error {
		first, graph, err := m.build(m.sets[i%len(m.sets)])
		if i < m.copies && err == nil {
			before, timed[i] = append(before, first...), graph
		}
		return err
	})
	if err != nil {
		return times, err
	}
	if len(before) > 0 {
		if err := mlxc.Eval(before...); err != nil {
			return times, err
		}
	}
	if err := mlxc.Synchronize(); err != nil {
		return times, err
	}
	var ahead *mlxc.Array
	if busy != nil {
		if ahead, err = busy.start(); err != nil {
			return times, err
		}
	}
	start := time.Now()
	for _, a := range timed {
		if err := mlxc.AsyncEval(a...); err != nil {
			return times, err
		}
	}
	times.submit = time.Since(start) / copies
	if ahead != nil {
		evaluate, ok := timeBetween(ahead.IsReady, func() bool {
			return !slices.ContainsFunc(timed[m.copies-1], func(a *mlxc.Array) bool { return !a.IsReady() })
		})
		times.evaluate, times.deviceOnly = evaluate/copies, ok
		return times, errors.Join(mlxc.Eval(ahead), mlxc.Synchronize())
	}
	if err := mlxc.Synchronize(); err != nil {
		return times, err
	}
	times.evaluate = time.Since(start) / copies
	return times, nil
}

// meanOfBuilds calls build(i) for i from 0, at least `copies` and usually minBuilds times. It returns the mean time of a
// call.
func meanOfBuilds(copies int, build func(i int) error) (mean time.Duration, err error) {
	start := time.Now()
	n := 0
	for ; n < copies || n < minBuilds && time.Since(start) < repetitionTime; n++ {
		if err := build(n); err != nil {
			return 0, err
		}
	}
	return time.Since(start) / time.Duration(n), nil
}

// timeBetween polls for the time from the change of begun to true to the change of ended to true. ok is false if either
// change was not observed or the error may exceed 1/errorShare of the time.
func timeBetween(begun, ended func() bool) (t time.Duration, ok bool) {
	begin, beginError, ok := pollUntil(begun)
	if !ok {
		return 0, false
	}
	end, endError, ok := pollUntil(ended)
	t = end.Sub(begin)
	return t, ok && errorShare*(beginError+endError) <= t
}

// pollUntil calls ready until it returns true. The change happened at `at`, plus or minus maxError. ok is false if the
// first call returned true, or none did in maxPolling.
//
// MLX blocks the thread in a wait for CUDA. Such a wait may return hundreds of microseconds late.
func pollUntil(ready func() bool) (at time.Time, maxError time.Duration, ok bool) {
	var lastFalse time.Time // begin of the last call that returned false
	for start := time.Now(); ; {
		called := time.Now()
		if ready() {
			maxError = time.Since(lastFalse) / 2
			return lastFalse.Add(maxError), maxError, !lastFalse.IsZero()
		}
		if lastFalse = called; time.Since(start) > maxPolling {
			return called, 0, false
		}
	}
}

// timing summarizes the repetitions. It is nil if there are none.
func (m *measurement) timing() *report.Timing {
	if m == nil || len(m.device) == 0 {
		return nil
	}
	return report.NewTiming(report.Timing{
		Repetitions: m.device, WallRepetitions: m.wall, BuildRepetitions: m.builds,
		Submit: micros(m.submit), Copies: m.copies, ExtraMemory: m.extraMemory,
	})
}
