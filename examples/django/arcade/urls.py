from django.urls import path
from scores import views

urlpatterns = [
    path("", views.Top.as_view(), name="top"),
    path("scores", views.add, name="add"),
    path("players/<int:key>", views.player, name="player"),
]
