"""What an algorithm of ann-benchmarks offers to its runner."""


class BaseANN:
    def done(self):
        """Called at the end."""

    def get_memory_usage(self):
        return None

    def fit(self, X):
        raise NotImplementedError

    def query(self, q, n):
        raise NotImplementedError

    def batch_query(self, X, n):
        raise NotImplementedError

    def get_batch_results(self):
        raise NotImplementedError

    def get_additional(self):
        return {}

    def __str__(self):
        return self.name
