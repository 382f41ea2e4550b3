package ops

// equivalentMutants are the mutants of our kernels that compute the same and break no rule, each
// with the reason.
var equivalentMutants = map[string]string{
	"threadgroup_max: constant: if (simdgroups == 1) { → if (simdgroups == 0) {": throughMemory,
}

const throughMemory = "one simdgroup takes the way of several, through threadgroup memory"

// missedMutants are wrong, and nothing shows it: each with the reason.
var missedMutants = map[string]string{}
