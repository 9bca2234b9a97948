/// Uses the kernels of an installed faiss_bits without FAISS, as far as that
/// goes without a device: asks for the scratch of a selection, and is told
/// what is wrong with another.

#include <exception>

#include <kernels/select/Select.h>

bool planSelection() {
    faiss_bits::SelectProblem problem;
    problem.rows = 1;
    problem.cols = 1 << 24;
    problem.k = 10;
    // One long row is split over the GPU, which takes scratch to merge.
    const bool planned = faiss_bits::selectWorkspaceBytes(problem) > 0;

    problem.k = 0;
    try {
        faiss_bits::selectWorkspaceBytes(problem);
        return false;
    } catch (const std::exception&) {
        return planned;
    }
}
