#pragma once

#include "kernels/select/threshold/SampleChoice.h"

namespace faiss_bits {

/// Of split rows that their first sample misled, which all blocks read again:
/// every block of `segment` columns draws it by itself. Host only.
SampleChoice secondSample(const SelectProblem& problem, idx_t segment);

/// The same drawn by as many blocks as the first, beside it; places = 0 where
/// it would tell too little.
SampleChoice sampleBeside(
        const SelectProblem& problem,
        const SampleChoice& first);

/// The largest of up to so many places of a thread that tells something and
/// whose usual survivors have room, or none.
SampleChoice secondSampleWithin(
        const SelectProblem& problem,
        int places,
        double room);

} // namespace faiss_bits
