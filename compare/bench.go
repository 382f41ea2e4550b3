package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// BenchOptions choose what [Bench] does. Repeat must be at least 1.
type BenchOptions struct {
	DTypes []mlxc.DType   // All of [DTypes] if nil.
	Passes []report.Pass  // The operation's own if nil.
	Shape  *regexp.Regexp // Times the cases whose names match; all if nil.
	Repeat int            // How many repetitions are measured of each side.
	// Done, if it is not nil, is called after each row, which is the last of the report so far.
	Done func(*report.Bench)
}

// Bench times the gradients of ops on the current device, ours and MLX's, and MLX's add as the limit. It
// goes on after a failure, which the report holds. When ctx ends it stops after the current repetition, and
// the report is incomplete.
func Bench(ctx context.Context, ops []BenchOp, opt BenchOptions) *report.Bench {
	out := &report.Bench{
		MLX: mlxc.Version(), MLXC: mlxc.CVersion(),
		Device: mlxc.CurrentDevice().String(), DeviceName: deviceName(),
		Executor: customkernels.ExecutorName(), TF32: tf32(), Started: time.Now().UTC().Truncate(time.Second),
		Incomplete: true,
	}
	dtypes := opt.DTypes
	if dtypes == nil {
		dtypes = DTypes()
	}
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
					row, measured := benchRow(ctx, op.Name, c, dtype, pass, opt.Repeat)
					if !measured {
						break
					}
					out.Rows = append(out.Rows, row)
					if opt.Done != nil {
						opt.Done(out)
					}
				}
			}
		}
	}
	out.Incomplete = ctx.Err() != nil
	return out
}

// deviceName is what MLX calls the current device.
func deviceName() string {
	info, err := mlxc.CurrentDevice().Info(0)
	if err != nil {
		return ""
	}
	name, _ := info["device_name"].(string)
	return name
}

// benchRow measures one row. There is none if ctx ended before its first repetition did.
func benchRow(ctx context.Context, op string, c BenchCase, dtype mlxc.DType, pass report.Pass, repeat int) (row report.BenchRow, measured bool) {
	nan := report.Number(math.NaN())
	row = report.BenchRow{
		Op: op, Case: c.Name, DType: dtype.String(), Pass: pass,
		Elements: c.elements(), Bytes: c.bytes(pass, dtype), FLOPs: c.FLOPs[pass],
		Difference: nan, Ratio: nan, OverLimit: nan,
	}
	if row.FLOPs > 0 {
		row.Bytes = 0
	}
	if ctx.Err() != nil {
		return row, false
	}
	// What one row leaves in MLX's cache must not be missing to the next, which has other sizes.
	defer mlxc.ClearCache()
	mlxc.WithScope(func() {
		if err := measureRow(ctx, &row, c, dtype, repeat); err != nil {
			row.Error = err.Error()
		}
	})
	row.Derive()
	return row, row.Error != "" || row.Ours != nil
}

// measureRow fills in what is measured.
func measureRow(ctx context.Context, row *report.BenchRow, c BenchCase, dtype mlxc.DType, repeat int) error {
	sets, err := benchSets(row.Op, c, dtype)
	if err != nil {
		return fmt.Errorf("the inputs could not be made: %w", err)
	}
	ours := gradientSide(c.Ours, c, row.Pass, sets)
	before := customkernels.Launches()
	if err := ours.evaluate(); err != nil { // Compiles the kernels.
		return fmt.Errorf("our gradient failed: %w", err)
	}
	row.Launches = int(customkernels.Launches() - before)
	if row.Launches == 0 {
		return errors.New("nothing ran: none of our kernels was launched")
	}
	sides := []*benchSide{ours}

	var mlx *benchSide
	if row.MLXMessage = c.unsafe(); row.MLXMessage == "" {
		mlx = gradientSide(c.MLX, c, row.Pass, sets)
		if err := mlx.evaluate(); err != nil {
			mlx, row.MLXMessage = nil, err.Error()
		}
	}
	if mlx != nil {
		sides = append(sides, mlx)
		difference, err := gradientDifference(c, sets[0])
		if err != nil {
			return fmt.Errorf("the gradients could not be compared: %w", err)
		}
		row.Difference = report.Number(difference)
		if !(difference <= mostDifference(dtype)) {
			return fmt.Errorf("ours and MLX's gradients differ by %.3g of their size: what is wrong is not timed", difference)
		}
	}
	var add *benchSide
	if row.Bytes > 0 {
		if add, row.AddBytes, err = addSide(c.largestMoved(row.Pass, dtype), dtype); err != nil {
			return fmt.Errorf("the limit could not be measured: %w", err)
		}
		sides = append(sides, add)
	}

	queue, err := newBenchQueue()
	if err != nil {
		return fmt.Errorf("the device could not be kept busy: %w", err)
	}
	for _, s := range sides {
		s.queue = queue
		if err := s.calibrate(); err != nil {
			return err
		}
	}
	for k := range repeat {
		if ctx.Err() != nil {
			break
		}
		for i := range sides {
			// Each has every place in the order in turn.
			if err := sides[(i+k)%len(sides)].measure(); err != nil {
				return err
			}
		}
	}
	row.Ours, row.MLX, row.Add = ours.timing(), mlx.timing(), add.timing()
	return nil
}

// mostDifference is allowed between ours and MLX's gradients. It is for gross errors, which would make times
// meaningless, and so leaves room for TF32 and for sums of thousands of rows in the dtype itself: MLX's dw of
// 8192 rows is off by 0.09 in bfloat16.
func mostDifference(dtype mlxc.DType) float64 { return 0.02 + 50*spacing(dtype) }

// gradientDifference is the sum of |ours − MLX's| over that of |MLX's|, of the gradient where it is largest.
func gradientDifference(c BenchCase, data operands) (largest float64, err error) {
	mlxc.WithScope(func() {
		wrt, in, cotangents := c.differentiated(), arrays(data.inputs), arrays(data.cotangents)
		var gradients [2][]*mlxc.Array
		for i, f := range []mlxc.Func{c.Ours, c.MLX} {
			if _, gradients[i], err = vjp(f, in, wrt, cotangents); err != nil {
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
			if !(relative <= largest) { // NaN stays.
				largest = relative
			}
			if math.IsNaN(relative) {
				return
			}
		}
	})
	return largest, err
}
