package report

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// WritePlot draws MLX's time divided by ours over the number of elements as a PNG: a panel for each dtype, a line for
// each operation. It fails if no row has a ratio.
func (b *Bench) WritePlot(w io.Writer) error {
	var dtypes, ops []string
	for _, r := range b.Rows {
		if math.IsNaN(float64(r.Ratio)) {
			continue
		}
		if !slices.Contains(dtypes, r.DType) {
			dtypes = append(dtypes, r.DType)
		}
		if !slices.Contains(ops, r.Op) {
			ops = append(ops, r.Op)
		}
	}
	if len(dtypes) == 0 {
		return errors.New("there is nothing to plot: no row has a ratio")
	}
	panels, legend := make([]*plot.Plot, len(dtypes)), plot.NewLegend()
	for i, dtype := range dtypes {
		panels[i] = plot.New()
		panels[i].Title.Text = fmt.Sprintf("%s, %s", dtype, b.DeviceName)
		panels[i].X.Label.Text = "elements of the largest array"
		panels[i].Y.Label.Text = "MLX's time ÷ ours"
		panels[i].X.Scale, panels[i].Y.Scale = plot.LogScale{}, plot.LogScale{}
		panels[i].X.Tick.Marker, panels[i].Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
		panels[i].Add(plotter.NewGrid(), plotter.NewFunction(func(float64) float64 { return 1 }))
	}
	for k, op := range ops {
		named := false
		for i, dtype := range dtypes {
			points := b.ratios(op, dtype)
			if len(points) == 0 {
				continue
			}
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return fmt.Errorf("plotting: %w", err)
			}
			line.Color, line.Dashes = plotutil.Color(k), plotutil.Dashes(k)
			marks.Color, marks.Shape = plotutil.Color(k), plotutil.Shape(k)
			panels[i].Add(line, marks)
			if !named {
				legend.Add(op, line, marks)
				named = true
			}
		}
	}
	shareScales(panels)

	const panelWidth, legendWidth, height = 15 * vg.Centimeter, 6 * vg.Centimeter, 11 * vg.Centimeter
	image := vgimg.New(panelWidth*vg.Length(len(panels))+legendWidth, height)
	whole := draw.New(image)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Centimeter, PadTop: vg.Millimeter, PadBottom: vg.Millimeter}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.Crop(whole, 0, -legendWidth, 0, 0))[0] {
		panels[i].Draw(c)
	}
	legend.Top = true
	legend.Draw(draw.Crop(whole, panelWidth*vg.Length(len(panels)), -vg.Centimeter/2, 0, -vg.Centimeter))
	_, err := vgimg.PngCanvas{Canvas: image}.WriteTo(w)
	return err
}

// ratios returns the points of one operation, ordered by size.
func (b *Bench) ratios(op, dtype string) plotter.XYs {
	var points plotter.XYs
	for _, r := range b.Rows {
		if r.Op == op && r.DType == dtype && !math.IsNaN(float64(r.Ratio)) {
			points = append(points, plotter.XY{X: float64(r.Elements), Y: float64(r.Ratio)})
		}
	}
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// shareScales gives all panels the same axes.
func shareScales(panels []*plot.Plot) {
	x, y := [2]float64{math.Inf(1), 0}, [2]float64{1, 1}
	for _, p := range panels {
		x = [2]float64{min(x[0], p.X.Min), max(x[1], p.X.Max)}
		y = [2]float64{min(y[0], p.Y.Min), max(y[1], p.Y.Max)}
	}
	for _, p := range panels {
		p.X.Min, p.X.Max = x[0]/2, 2*x[1]
		p.Y.Min, p.Y.Max = y[0]/1.5, 1.5*y[1]
	}
}
