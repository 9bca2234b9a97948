#pragma once

#include "kernels/common/Types.h"
#include "kernels/cpu/Int16Types.h"
#include "kernels/cpu/KernelMetric.h"
#include "kernels/cpu/Machine.h"
#include "kernels/cpu/Plan.h"

namespace faiss_bits::cpu {

/// What the cost model looks at: a batch of a search.
struct SearchShape {
    idx_t numQueries = 0, numVectors = 0, k = 0;
    int depth = 0;
    bool byInt16 = false; ///< sweeps are of 16-bit integers (Int16Types.h)
    int panelValues = 0;  ///< as in Setup
    int scalarBytes = 4;
    int lanes = 1;
    bool certified = false;
    KernelMetric metric = KernelMetric::L2;

    /// Values of a packed row.
    int panelDepth() const {
        return panelValues ? panelValues
                : byInt16  ? int16PanelDepth(depth)
                           : depth;
    }
};

/// Operations of a pair of components, two for a multiply-add.
double operationsOf(KernelMetric metric);

/// Seconds that a plan takes, by section 2.6 of the paper: its terms for the
/// arithmetic, the packing and the stored distances, and in place of its
/// estimate of heap operations the number of candidates that pass the limit of
/// a query, for each way to keep them.
double predictSeconds(
        const SearchShape& shape,
        const Plan& plan,
        const Machine& machine);

/// The constants to plan a search with. Those of a typical machine if none were
/// measured yet and the search is over before a measurement would be: the
/// variants that the model chooses among give the same results.
const Machine& machineForPlan(const SearchShape& shape);

} // namespace faiss_bits::cpu
