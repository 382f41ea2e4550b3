package ops

// equivalentMutants are the mutants of our kernels that compute the same and break no rule, each
// with the reason.
var equivalentMutants = map[string]string{}
