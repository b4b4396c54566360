package capi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// metav1Now returns the time at which a lab begins.
func metav1Now() metav1.Time { return metav1.NewTime(began) }
