"""What OpenLineage is told of a task, where its provider is installed and configured.

A collection is a dataset: the namespace is the warehouse, the name the table's, ``PIPELINE.COLLECTION``. So is a folder that a
source took files from. What checks said of an epoch is a facet of what is read, as OpenLineage has it: a collection with checks
is therefore also among the inputs of its task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import column_lineage_dataset as columns
from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality
from openlineage.client.facet_v2 import dataset_version_dataset as version
from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics
from openlineage.client.facet_v2 import schema_dataset as schema

from firnline.engine.outside import folders_in
from firnline.model.names import BOOKKEEPING, place
from firnline.runtime.explained import recalled

if TYPE_CHECKING:
    from firnline.model.declaration import Collection
    from firnline.model.epoch import Epoch
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project
    from firnline.tables.log import Entry
    from firnline.tables.sidecar import Sidecar

Facets = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Telling:
    """What is told of a pipeline's tasks."""

    project: Project
    graph: Graph

    def reads(self, names: Sequence[str]) -> OperatorLineage[Any, Any]:
        """Of a task that reads collections and makes none."""
        return OperatorLineage(inputs=[self._input(name) for name in names])

    def makes(self, names: Sequence[str], epoch: Epoch | None) -> OperatorLineage[Any, Any]:
        """Of a task that advances collections through an epoch; before it has begun, of none."""
        read: dict[str, int | None] = {}
        folders, checked, outputs = [], [], []
        for each in map(self.graph.collection, names):
            published = None if epoch is None else self._published(each.name, epoch)
            snapshots = {} if published is None else {name: of.snapshot for name, of in published[1].inputs.items()}
            read |= {name: snapshots.get(name) for name in each.inputs if name not in names}
            outputs.append(self._output(each, published))
            folders += [] if published is None else folders_in(published[1].determinants, self.project.settings.root)
            if epoch is not None and each.checks:
                checked.append(self._input(each.name, asserted=self._asserted(each.name, epoch)))
        files = [InputDataset("file", str(folder)) for folder in dict.fromkeys(folders)]
        return OperatorLineage(inputs=[*(self._input(*each) for each in read.items()), *files, *checked], outputs=outputs)

    def _published(self, name: str, epoch: Epoch) -> tuple[Entry, Sidecar] | None:
        """The publication of an epoch, unless it is merged with others."""
        log = self.project.log(self.graph.name, name)
        for entry in log.entries(epoch.lower):
            if (entry.lower, entry.description.upper) == (epoch.lower, epoch.upper):
                return entry, log.sidecar(entry)
        return None

    def _input(self, name: str, snapshot: int | None = None, asserted: Facets | None = None) -> InputDataset:
        return InputDataset(*self._dataset(name), facets=self._facets(name, snapshot), inputFacets=asserted or {})

    def _output(self, collection: Collection, published: tuple[Entry, Sidecar] | None) -> OutputDataset:
        snapshot: int | None = None
        told: Facets = {}
        if published is not None:
            entry, files = published[0], published[1].files or ()
            size = sum(file.bytes for file in files)
            told["outputStatistics"] = statistics.OutputStatisticsOutputDatasetFacet(entry.rows, size, len(files))
            snapshot = entry.snapshot
        facets = self._facets(collection.name, snapshot) | self._columns(collection)
        return OutputDataset(*self._dataset(collection.name), facets=facets, outputFacets=told)

    def _dataset(self, name: str) -> tuple[str, str]:
        return self.project.settings.warehouse, ".".join(place(self.graph.name, name))

    def _facets(self, name: str, snapshot: int | None) -> Facets:
        facets: Facets = {} if snapshot is None else {"version": version.DatasetVersionDatasetFacet(str(snapshot))}
        table = self.project.log(self.graph.name, name).load()
        if table is not None:
            fields = [schema.SchemaDatasetFacetFields(*each) for each in table.types.items() if each[0] not in BOOKKEEPING]
            facets["schema"] = schema.SchemaDatasetFacet(fields)
        return facets

    def _columns(self, collection: Collection) -> Facets:
        """Where the columns of a stage come from, if its plan was made on this machine."""
        explained = recalled(self.project.settings, self.graph, collection.name)
        if explained is None or not explained.lineage:
            return {}

        def fields(origins: Sequence[str]) -> Iterator[columns.InputField]:
            for origin in origins:
                names = [each for each in collection.inputs if origin.startswith(f"{each}.")]
                if names:  # the epoch's time is of no collection
                    name = max(names, key=len)
                    yield columns.InputField(*self._dataset(name), origin.removeprefix(f"{name}."))

        told = {column: columns.Fields([*fields(origins)]) for column, origins in explained.lineage.items()}
        return {"columnLineage": columns.ColumnLineageDatasetFacet(told)}

    def _asserted(self, name: str, epoch: Epoch) -> Facets:
        """What the checks of an epoch said: an assertion for each expectation."""
        assertions = [
            quality.Assertion(
                assertion=each["expectation_config"]["type"],
                success=each["success"],
                column=each["expectation_config"]["kwargs"].get("column"),
                severity="error" if check.blocking else "warn",
                name=f"{check.suite} on the {check.on}",
            )
            for check, document in self.project.check_results(self.graph.name).of(name, epoch.lower)
            for each in document["results"]
        ]
        return {"dataQualityAssertions": quality.DataQualityAssertionsDatasetFacet(assertions)} if assertions else {}
