"""The calls that a run of big-ann-benchmarks makes, in their order."""


class BaseRunner:
    def build(algo, dataset):
        algo.fit(dataset)
        return 0.0

    def run_task(
        algo, ds, distance, count, run_count, search_type, private_query,
        runbook=None,
    ):
        for _ in range(run_count):
            if search_type == "range":
                algo.range_query(ds.get_queries(), count)
                results = algo.get_range_results()
            elif search_type == "knn_filtered":
                algo.filtered_query(
                    ds.get_queries(), ds.get_queries_metadata(), count
                )
                results = algo.get_results()
            else:
                algo.query(ds.get_queries(), count)
                results = algo.get_results()
        return {"name": str(algo), **algo.get_additional()}, results
