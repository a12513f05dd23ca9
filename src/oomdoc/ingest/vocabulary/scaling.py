"""Replicas and what decides about them: bounds, a rule's threshold, the value of what an autoscaler follows.

Field names of HorizontalPodAutoscaler (autoscaling/v2), KEDA's ScaledObject and the columns that kubectl prints for both; of groups of
machines as clouds describe them (a group's MinSize, MaxSize and DesiredCapacity, a policy's PredefinedMetricType and TargetValue).
"""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

_MOST = 1e5

QUANTITIES = (
    Quantity(
        "scaler.replicas", "scaler", "replicas", "count",
        strong="replica, current replica, ready replica, replica ready, replica current, replica healthy, healthy replica, replica observed, replica actual, pod count, available replica, replica running, running replica, ready group, group ready, lws group, worker group, running pod, replica status, ready pod, pod ready, pod running, available workers, worker pods, worker gpu pods",
        weak="pods, pod, instances, healthy, observed",
        exact="replicas, currentReplicas, readyReplicas, hpa_current, num_replicas, availableReplicas, kube_deployment_status_replicas, kube_statefulset_status_replicas, kube_horizontalpodautoscaler_status_current_replicas, kube_deployment_spec_replicas",
        high=_MOST,
    ),
    Quantity(
        "scaler.ready", "scaler", "ready", "count",
        strong="", weak="ready, ready pod, pod ready, available, serving, up", exact="kube_deployment_status_replicas_ready, kube_deployment_status_replicas_available",
        high=_MOST,
    ),
    Quantity(
        "scaler.desired", "scaler", "desired", "count",
        strong="desired replica, replica desired, target replica, replica target, replica wanted, wanted replica, recommended replica, desired pod, desired workers",
        weak="desired, recommended",
        exact="desiredReplicas, DesiredCapacity, hpa_desired, va_desired, kube_horizontalpodautoscaler_status_desired_replicas",
        high=_MOST,
    ),
    Quantity(
        "scaler.minimum", "scaler", "minimum", "count",
        strong="min replica, minimum replica, replica min, min pod",
        weak="min, minimum",
        exact="minReplicas, minReplicaCount, MINPODS, MinSize, MinCapacity, minNumReplicas, minInstances",
        high=_MOST,
    ),
    Quantity(
        "scaler.maximum", "scaler", "maximum", "count",
        strong="max replica, replica max, max pod",
        weak="max, maximum",
        exact="maxReplicas, maxReplicaCount, MAXPODS, MaxSize, MaxCapacity, maxNumReplicas, maxInstances, kube_horizontalpodautoscaler_spec_max_replicas",
        high=_MOST,
    ),
    Quantity(
        "scaler.threshold", "scaler", "threshold", "number",
        strong="target value, scale threshold, scale up threshold, scaling threshold, average value, target average value",
        weak="threshold, target",
        exact="targetValue, averageValue, targetAverageValue",
        high=1e12,
    ),
    Quantity(
        "scaler.metric", "scaler", "name", "text",
        strong="metric name, target metric, scale metric, scaling metric",
        weak="metric",
        exact="metricName, targetMetric, PredefinedMetricType, predefinedScalingMetricType",
        pattern=r"^[A-Za-z_][\w:.{}=\"'/-]{2,200}$",
    ),
)  # fmt: skip
