package faults

var evaluation = Area{"Evaluation", []Fault{
	{
		Name:  "failed-evaluation-has-values",
		Title: "An array whose evaluation failed has undefined values",
		Wrong: "After an error, the array counts as evaluated. A second evaluation returns no error, and the " +
			"elements are undefined.",
		Right:  "Each evaluation returns the error.",
		Chance: true, // in 1 to 4 % of the processes, the second evaluation returns the error of the first, too
		Guards: []Guard{{"mlxc/libmlxg/mlxg_evaluation.h", "settle"}},
	},
	{
		Name:  "error-in-another-evaluation",
		Title: "The error of an asynchronous evaluation appears in another evaluation",
		Wrong: "The stream keeps the error and throws it in the next evaluation, which does not depend on the " +
			"failed array.",
		Right:  "The error appears in evaluations of arrays that depend on the failed one.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_evaluation.h", "evaluation"}},
		Cost:   "a task for each evaluation and each node that can fail",
	},
}}
