// Package bench times our gradients and MLX's alternately in one run, and compares both with the limit of the device.
//
// A repetition evaluates several copies of a gradient without waiting between them. On a GPU it is measured a second
// time: other work keeps the device busy until the host has submitted all copies, so this time is the device's alone.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Options holds the options of [Run]. Repeat must be at least 1.
type Options struct {
	DTypes []mlxc.DType   // [compare.DTypes] if nil
	Passes []report.Pass  // [Op.Pass] if nil
	Shape  *regexp.Regexp // times the cases whose names match; all if nil
	Repeat int            // measured repetitions of each side
	// Done, if not nil, is called after each row with the report so far and the number of rows of the whole run.
	Done func(r *report.Bench, all int)
}

// Run times our gradients and MLX's on the current device. It measures the limits of a CPU once. On a GPU it times MLX's
// add beside each row as the limit of memory bandwidth. It continues after a failure and records it in the report. If
// ctx ends, Run stops after the current repetition and the report is incomplete. No other goroutine may launch kernels
// or use the device at the same time.
func Run(ctx context.Context, ops []Op, opt Options) *report.Bench {
	out := &report.Bench{
		MLX: mlxc.Version(), MLXC: mlxc.CVersion(),
		Device: mlxc.CurrentDevice().String(), DeviceName: deviceName(),
		Executor: customkernels.ExecutorName(), TF32: arrays.TF32(), Started: time.Now().UTC().Truncate(time.Second),
		Incomplete: true,
	}
	dtypes := opt.DTypes
	if dtypes == nil {
		dtypes = compare.DTypes()
	}
	all := plan(ops, dtypes, opt)
	var limitErr error
	if mlxc.CurrentDevice() == mlxc.CPU && len(all) > 0 && ctx.Err() == nil {
		out.Limits, limitErr = measureLimits()
	}
	for _, p := range all {
		row, measured := runCase(ctx, p, opt.Repeat, out.Limits, limitErr)
		if !measured {
			break
		}
		out.Rows = append(out.Rows, row)
		if opt.Done != nil {
			opt.Done(out, len(all))
		}
	}
	out.Incomplete = ctx.Err() != nil
	return out
}

// planned is a row to measure.
type planned struct {
	op    string
	c     Case
	dtype mlxc.DType
	pass  report.Pass
}

// plan returns the rows that the options select.
func plan(ops []Op, dtypes []mlxc.DType, opt Options) []planned {
	var rows []planned
	for _, op := range ops {
		passes := opt.Passes
		if passes == nil {
			passes = []report.Pass{op.Pass}
		}
		for _, c := range op.Cases {
			if opt.Shape != nil && !opt.Shape.MatchString(c.Name) {
				continue
			}
			for _, dtype := range dtypes {
				if c.DTypes != nil && !slices.Contains(c.DTypes, dtype) {
					continue
				}
				for _, pass := range passes {
					rows = append(rows, planned{op.Name, c, dtype, pass})
				}
			}
		}
	}
	return rows
}

// deviceName returns MLX's name of the current device, or "".
func deviceName() string {
	info, err := mlxc.CurrentDevice().Info(0)
	if err != nil {
		return ""
	}
	name, _ := info["device_name"].(string)
	return name
}

// runCase measures one row. It returns false if ctx ended before the first repetition was complete.
func runCase(
	ctx context.Context,
	p planned,
	repeat int,
	limits *report.CPULimits,
	limitErr error,
) (row report.BenchRow, measured bool) {
	nan := report.Number(math.NaN())
	row = report.BenchRow{
		Op: p.op, Case: p.c.Name, DType: p.dtype.String(), Pass: p.pass,
		Elements: p.c.Elements(), Bytes: p.c.Bytes(p.pass, p.dtype), FLOPs: p.c.FLOPs[p.pass],
		Difference: nan, Ratio: nan, OverLimit: nan,
	}
	if row.FLOPs > 0 {
		row.Bytes = 0
	}
	if ctx.Err() != nil {
		return row, false
	}
	// The next row has other sizes. It cannot use the buffers in MLX's cache, which count against its memory.
	defer mlxc.ClearCache()
	mlxc.WithScope(func() {
		err := measureRow(ctx, &row, p.c, p.dtype, repeat)
		if err == nil && limitErr != nil {
			err = fmt.Errorf("measuring the limits failed: %w", limitErr)
		}
		if err != nil {
			row.Error = err.Error()
		}
	})
	row.Derive(limits)
	return row, row.Error != "" || row.Ours != nil
}

// measureRow fills in the measurements of a row.
func measureRow(ctx context.Context, row *report.BenchRow, c Case, dtype mlxc.DType, repeat int) error {
	sets, err := makeSets(row.Op, c, dtype)
	if err != nil {
		return fmt.Errorf("making the inputs failed: %w", err)
	}
	ours := gradientMeasurement(c.Ours, c, row.Pass, sets)
	before := customkernels.LaunchCount()
	if err := ours.evaluate(); err != nil { // compiles the kernels
		return fmt.Errorf("our gradient failed: %w", err)
	}
	row.Launches = int(customkernels.LaunchCount() - before)
	if row.Launches == 0 {
		return errors.New("nothing ran: none of our kernels was launched")
	}
	sides := []*measurement{ours}

	var mlx *measurement
	if row.MLXMessage = c.UnsafeReason(); row.MLXMessage == "" {
		mlx = gradientMeasurement(c.MLX, c, row.Pass, sets)
		if err := mlx.evaluate(); err != nil {
			mlx, row.MLXMessage = nil, err.Error()
		}
	}
	if mlx != nil {
		sides = append(sides, mlx)
		difference, err := gradientDifference(c, sets[0])
		if err != nil {
			return fmt.Errorf("comparing the gradients failed: %w", err)
		}
		row.Difference = report.Number(difference)
		if !(difference <= maxDifference(dtype)) {
			return fmt.Errorf("the relative difference of our gradient and MLX's is %.3g; it must be at most %.3g",
				difference, maxDifference(dtype))
		}
	}
	var add *measurement
	if row.Bytes > 0 && mlxc.CurrentDevice() != mlxc.CPU {
		if add, row.AddBytes, err = addMeasurement(c.LargestMoved(row.Pass, dtype), dtype); err != nil {
			return fmt.Errorf("measuring the limit failed: %w", err)
		}
		sides = append(sides, add)
	}

	busy, err := newBusyWork()
	if err != nil {
		return fmt.Errorf("keeping the device busy failed: %w", err)
	}
	for _, s := range sides {
		s.busy = busy
		if err := s.calibrate(); err != nil {
			return err
		}
	}
	for k := range repeat {
		if ctx.Err() != nil {
			break
		}
		for i := range sides {
			// The order rotates, so that each side has each place equally often.
			if err := sides[(i+k)%len(sides)].measure(); err != nil {
				return err
			}
		}
	}
	row.Ours, row.MLX, row.Add = ours.timing(), mlx.timing(), add.timing()
	return nil
}

// maxDifference returns the largest relative difference between our gradient and MLX's at which a row is timed. A
// larger one means a wrong gradient, whose time is meaningless. The limit leaves room for TF32 and for MLX's sums of
// thousands of rows in a narrow dtype: its dw of 8192 rows is off by 0.09 in bfloat16.
func maxDifference(dtype mlxc.DType) float64 { return 0.02 + 50*arrays.Spacing(dtype) }

// gradientDifference returns Σ|ours − MLX's| / Σ|MLX's| of the gradient for which it is largest. It is NaN if it is NaN
// for one gradient.
func gradientDifference(c Case, data operands) (largest float64, err error) {
	mlxc.WithScope(func() {
		wrt, in, cotangents := c.Differentiated(), data.inputs, data.cotangents
		var gradients [2][]*mlxc.Array
		for i, f := range []mlxc.Func{c.Ours, c.MLX} {
			if _, gradients[i], err = arrays.VJP(f, in, wrt, cotangents); err != nil {
				return
			}
			if err = mlxc.Eval(gradients[i]...); err != nil {
				return
			}
		}
		for i := range gradients[0] {
			a, b := gradients[0][i].AsType(mlxc.Float32), gradients[1][i].AsType(mlxc.Float32)
			var difference, size float32
			if difference, err = mlxc.Item[float32](a.Sub(b).Abs().Mean()); err != nil {
				return
			}
			if size, err = mlxc.Item[float32](b.Abs().Mean()); err != nil {
				return
			}
			relative := float64(difference) / float64(size)
			if difference == 0 {
				relative = 0
			}
			if !(relative <= largest) { // also true for NaN
				largest = relative
			}
			if math.IsNaN(relative) {
				return
			}
		}
	})
	return largest, err
}
