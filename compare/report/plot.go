package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A plot is a figure of an HTML page with logarithmic axes, in SVG units. [newPlot] sets its size, labels and ticks.
type plot struct {
	Title, XLabel, YLabel string
	Note                  string
	Width, Height         int
	Left, Right           float64 // the frame
	Top, Bottom           float64
	XTicks, YTicks        []tick
	Guide                 string // a line of SVG coordinates, such as the limit of the accuracy rule
	Points                []point
	Lines                 []line
}

type tick struct {
	At    float64
	Label string // empty for a line of the grid without a label
}

// A point of a series.
type point struct {
	X, Y   float64
	Series int // style, from 0
	Name   string
}

// A line connects the points of a series.
type line struct {
	Name   string
	Series int
	Path   string // SVG coordinates
}

// The size of a plot in SVG units. The page fits one plot into the width of a phone, and three into that of a desktop.
const (
	plotWidth, plotHeight = 360, 280
	plotLeft, plotRight   = 52, plotWidth - 10
	plotTop, plotBottom   = 10, plotHeight - 46
)

// span is a range of an axis. Both ends are positive.
type span struct{ min, max float64 }

// include widens the span.
func (s *span) include(v float64) {
	if s.min == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
}

// padded returns the span with a margin.
func (s span) padded() span { return span{s.min / 1.4, s.max * 1.4} }

// at returns the coordinate of v on a logarithmic axis whose ends have the coordinates from and to. A value outside the
// span is drawn at its end.
func (s span) at(v, from, to float64) float64 {
	v = min(max(v, s.min), s.max)
	share := math.Log(v/s.min) / math.Log(s.max/s.min)
	return round(from + share*(to-from))
}

// round rounds to a tenth of a unit, which is less than a pixel.
func round(v float64) float64 { return math.Round(10*v) / 10 }

// values returns round numbers of the span: powers of ten, and 2 and 5 times a power if there are few.
func (s span) values() []float64 {
	var all, powers []float64
	for e := math.Floor(math.Log10(s.min)); e <= math.Ceil(math.Log10(s.max)); e++ {
		for _, digit := range []float64{1, 2, 5} {
			v, _ := strconv.ParseFloat(fmt.Sprintf("%ge%g", digit, e), 64)
			if v < s.min || v > s.max {
				continue
			}
			all = append(all, v)
			if digit == 1 {
				powers = append(powers, v)
			}
		}
	}
	const few, many = 3, 6
	if len(powers) < few {
		return all
	}
	step := (len(powers) + many - 1) / many
	var shown []float64
	for i := 0; i < len(powers); i += step {
		shown = append(shown, powers[i])
	}
	return shown
}

func tickLabel(v float64) string {
	if v >= 0.001 && v < 1e5 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	mantissa := strconv.FormatFloat(v, 'e', 0, 64)
	digit, exponent := mantissa[:1], mantissa[2:]
	n, _ := strconv.Atoi(exponent)
	return digit + "e" + strconv.Itoa(n)
}

// newPlot returns a plot without points.
func newPlot(title, xLabel, yLabel string, x, y span) plot {
	p := plot{
		Title: title, XLabel: xLabel, YLabel: yLabel, Width: plotWidth, Height: plotHeight,
		Left: plotLeft, Right: plotRight, Top: plotTop, Bottom: plotBottom,
	}
	for _, v := range x.values() {
		p.XTicks = append(p.XTicks, tick{x.at(v, plotLeft, plotRight), tickLabel(v)})
	}
	for _, v := range y.values() {
		p.YTicks = append(p.YTicks, tick{y.at(v, plotBottom, plotTop), tickLabel(v)})
	}
	return p
}

func svgPoint(x, y float64) string {
	return strconv.FormatFloat(x, 'f', -1, 64) + "," + strconv.FormatFloat(y, 'f', -1, 64)
}

// The series of a plot of errors.
const (
	seriesPassed = iota
	seriesFailed
)

// plots returns a plot for each dtype, with MLX's largest error on the x axis and ours on the y axis, both divided by
// the floor. Rows below the guide pass if their mean error does.
func (r *Report) plots() []plot {
	const smallest = 1e-3 // smaller values, also 0, are drawn here
	axis := span{}
	axis.include(smallest)
	axis.include(2)
	var dtypes []string
	for _, c := range r.Rows {
		x, y := float64(c.MLXMaxErr/c.Floor), float64(c.MaxErr/c.Floor)
		if !drawable(x) || !drawable(y) {
			continue
		}
		axis.include(max(x, y, smallest))
		if !slices.Contains(dtypes, c.DType) {
			dtypes = append(dtypes, c.DType)
		}
	}
	axis = axis.padded()
	var plots []plot
	for _, dtype := range dtypes {
		p := newPlot(dtype, "MLX's largest error ÷ floor", "our largest error ÷ floor", axis, axis)
		for _, x := range []float64{axis.min, 0.5, axis.max} {
			p.Guide += svgPoint(axis.at(x, plotLeft, plotRight), axis.at(max(2*x, 1), plotBottom, plotTop)) + " "
		}
		left, at := 0, map[point]int{}
		for _, c := range r.Rows {
			if c.DType != dtype {
				continue
			}
			x, y := float64(c.MLXMaxErr/c.Floor), float64(c.MaxErr/c.Floor)
			if !drawable(x) || !drawable(y) {
				left++
				continue
			}
			series := seriesPassed
			if !c.Pass {
				series = seriesFailed
			}
			// Points that cover each other are one point.
			spot := point{
				X:      math.Round(axis.at(max(x, smallest), plotLeft, plotRight)),
				Y:      math.Round(axis.at(max(y, smallest), plotBottom, plotTop)),
				Series: series,
			}
			if at[spot]++; at[spot] == 1 {
				spot.Name = fmt.Sprintf("%s %s %s: ours %s, MLX %s", c.Op, c.Name, c.Output, short(c.MaxErr), short(c.MLXMaxErr))
				p.Points = append(p.Points, spot)
			}
		}
		for i, spot := range p.Points {
			spot.Name = ""
			if n := at[spot]; n > 1 {
				p.Points[i].Name += fmt.Sprintf(" (and %d more rows here)", n-1)
			}
		}
		slices.SortStableFunc(p.Points, func(a, b point) int { return cmp.Compare(a.Series, b.Series) }) // failures on top
		p.Note = "Rows below the dashed line pass, unless their mean error is too large. Values below 0.001 are drawn at 0.001."
		if left > 0 {
			p.Note += fmt.Sprintf(" Not drawn: %d rows without a finite error or floor.", left)
		}
		plots = append(plots, p)
	}
	return plots
}

func drawable(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// plots returns two plots for each dtype: MLX's time divided by ours, and our time divided by the limit, over the size.
func (b *Bench) plots() []plot {
	const size = "elements of the largest array"
	ratio := func(r BenchRow) float64 { return float64(r.Ratio) }
	limit := func(r BenchRow) float64 { return float64(r.OverLimit) }
	return append(b.plotsOf("MLX's time ÷ ours", "Above the dashed line ours is faster.", size, ratio),
		b.plotsOf("our time ÷ limit", "The limit is "+b.limitMeaning()+".", size, limit)...)
}

// plotsOf returns a plot for each dtype, of a value of each row over the number of elements.
func (b *Bench) plotsOf(label, remark, size string, of func(BenchRow) float64) []plot {
	var dtypes, ops []string
	x, y := span{}, span{}
	y.include(1)
	for _, r := range b.Rows {
		if !slices.Contains(ops, r.Op) {
			ops = append(ops, r.Op) // every plot of the page has the same colors
		}
		if !drawable(of(r)) || r.Elements == 0 {
			continue
		}
		x.include(float64(r.Elements))
		y.include(of(r))
		if !slices.Contains(dtypes, r.DType) {
			dtypes = append(dtypes, r.DType)
		}
	}
	x, y = x.padded(), y.padded()
	var plots []plot
	for _, dtype := range dtypes {
		p := newPlot(dtype, size, label, x, y)
		p.Note = remark
		one := y.at(1, plotBottom, plotTop)
		p.Guide = svgPoint(plotLeft, one) + " " + svgPoint(plotRight, one)
		for k, op := range ops {
			var points []point
			for _, r := range b.Rows {
				if v := of(r); r.Op == op && r.DType == dtype && drawable(v) && r.Elements > 0 {
					points = append(points, point{
						X: x.at(float64(r.Elements), plotLeft, plotRight), Y: y.at(v, plotBottom, plotTop), Series: k % seriesStyles,
						Name: fmt.Sprintf("%s: %s %.2f", r.title(), label, v),
					})
				}
			}
			if len(points) == 0 {
				continue
			}
			slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.X, b.X) })
			l := line{Name: op, Series: k % seriesStyles}
			for _, at := range points {
				l.Path += svgPoint(at.X, at.Y) + " "
			}
			p.Lines = append(p.Lines, l)
			p.Points = append(p.Points, points...)
		}
		plots = append(plots, p)
	}
	return plots
}

// seriesStyles is the number of line styles in page.html.
const seriesStyles = 12
